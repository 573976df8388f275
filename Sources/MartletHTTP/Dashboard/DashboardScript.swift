/// The script of the dashboard: polls every two seconds, and shows the answers.
///
/// Names come from other nodes and from tables: they are only ever set as `textContent`.
package enum DashboardScript {
    package static let text = #"""
        "use strict";
        const $ = (id) => document.getElementById(id);
        const points = 150;
        const history = [];
        let paused = false;
        let last = null;
        let answered = null;

        function add(parent, tag, text, className) {
          const element = document.createElement(tag);
          if (text !== undefined && text !== null) element.textContent = String(text);
          if (className) element.className = className;
          parent.append(element);
          return element;
        }
        // Leaves what has not changed: it may have the focus or be selected, and screen readers would repeat it.
        function set(element, text, className) {
          if (element.textContent !== text) element.textContent = text;
          if (className !== undefined && element.className !== className) element.className = className;
        }
        function rows(id, list, none, make) {
          const body = $(id);
          const names = [...body.parentElement.tHead.rows[0].cells].map((cell) => cell.textContent);
          const known = JSON.stringify([list, hasToken(), new Date().toDateString()]);
          if (body.known === known) return;
          body.known = known;
          const at = [...body.rows].findIndex((row) => row.contains(document.activeElement));
          body.replaceChildren();
          for (const item of list) {
            const row = add(body, "tr");
            make(row, item);
            // On narrow screens each cell names its column.
            [...row.cells].forEach((cell, i) => { cell.dataset.label = names[i]; });
          }
          if (list.length === 0) add(add(body, "tr"), "td", none, "none").colSpan = names.length;
          if (at >= 0) (body.rows[at]?.querySelector("button") || body.closest(".scroll")).focus();
        }
        function time(row, text) {
          const date = new Date(text);
          const isToday = date.toDateString() === new Date().toDateString();
          const cell = add(row, "td",
            !text ? "never" : isToday ? date.toLocaleTimeString() : date.toLocaleString(), "time");
          if (text) cell.title = text;
        }
        function duration(seconds) {
          if (seconds < 90) return Math.round(seconds) + " s";
          if (seconds < 5400) return Math.round(seconds / 60) + " min";
          if (seconds < 129600) return Math.round(seconds / 3600) + " h";
          return Math.round(seconds / 86400) + " days";
        }
        function ago(text) {
          return text ? duration(Math.max(0, (Date.now() - new Date(text)) / 1000)) + " ago" : "never";
        }
        function tile(name, value, className) {
          const id = "tile-" + name.replace(" ", "-");
          let box = $(id);
          if (!box) {
            box = add($("tiles"), "div", undefined, "tile");
            box.id = id;
            add(box, "b");
            add(box, "span", name);
          }
          set(box.firstChild, value, className || "");
        }
        const sum = (list, of) => list.reduce((total, item) => total + of(item), 0);
        const number = (value) => value.toLocaleString(undefined, { maximumFractionDigits: 1 });

        // How many points a chart is wide: more the longer the page is open.
        const span = () => Math.max(30, history.length);
        function line(svg, values, most, className) {
          const polyline = document.createElementNS(svg.namespaceURI, "polyline");
          const step = 300 / (span() - 1);
          const first = span() - values.length;
          polyline.setAttribute("points", values.map((value, i) =>
            ((first + i) * step).toFixed(1) + "," + (98 - 94 * value / most).toFixed(1)).join(" "));
          polyline.setAttribute("class", className);
          svg.append(polyline);
        }
        function chart(id, label, lines) {
          const svg = $(id);
          const figure = svg.parentElement;
          svg.setAttribute("viewBox", "0 0 300 100");
          svg.setAttribute("preserveAspectRatio", "none");
          svg.setAttribute("aria-label", label);
          svg.replaceChildren();
          const axis = document.createElementNS(svg.namespaceURI, "line");
          for (const [name, value] of [["x1", 0], ["x2", 300], ["y1", 98], ["y2", 98], ["class", "axis"]]) {
            axis.setAttribute(name, value);
          }
          svg.append(axis);
          const most = Math.max(1, ...lines.flatMap((each) => each.values));
          set(figure.querySelector(".begin"), duration(2 * (span() - 1)) + " ago");
          set(figure.querySelector(".most"), "up to " + number(most));
          for (const each of lines) line(svg, each.values, most, each.className);
        }

        // What most needs somebody comes first.
        const badges = [
          ["stuck", "stuck"], ["reading", "held up"], ["publishing", "held up"], ["snapshot", "loading"],
          ["lag", "behind"], ["starting", "starting"],
        ];
        function badge(text, className) {
          set($("ready"), text, "badge " + className);
          document.title = (className === "good" ? "" : text + " · ") + $("name").textContent;
        }
        function showStatus(status) {
          const progress = status.progress;
          const codes = status.reasons.map((reason) => reason.code);
          answered = new Date().toLocaleTimeString();
          set($("name"), status.name || "Martlet");
          set($("about"), (status.node || "") + " ·\u00a0" + answered.replace(" ", "\u00a0"));
          const [, word] = badges.find(([code]) => codes.includes(code)) || ["", "not ready"];
          if (status.ready) badge("in step", "good");
          else badge(word, codes.every((code) => code === "snapshot" || code === "starting") ? "warn" : "bad");
          const missing = sum(status.origins, (origin) => sum(origin.gaps, (gap) => gap[1] - gap[0] + 1));
          const wrong = [...status.reasons, ...(status.warnings || [])].map((each) => each.message);
          if (status.quarantined > 0) wrong.push(
            "Messages that can't be decoded or verified: " + number(status.quarantined)
            + ". They are listed below and block nothing else.");
          if (missing > 0) wrong.push(
            "Transactions of other nodes that never arrived: " + number(missing) + ". See Nodes.");
          if (status.divergences > 0) wrong.push(
            "Rows in which nodes diverged: " + number(status.divergences) + ". List them with martlet verify.");
          showWrong(wrong);
          const lag = sum(progress.lags, (each) => each.messages);
          const late = Math.max(0, ...progress.lags.map((each) => each.seconds));
          tile("to publish", number(status.unpublished),
            codes.includes("publishing") || codes.includes("stuck") && status.unpublished > 0 ? "bad" : "");
          tile("to read", number(lag), codes.includes("lag") ? "bad" : "");
          tile("behind", duration(late), codes.includes("lag") ? "bad" : "");
          tile("parked", number(status.parked), status.parked > 0 ? "warn" : "");
          tile("quarantined", number(status.quarantined), status.quarantined > 0 ? "bad" : "");
          tile("missing", number(missing), missing > 0 ? "bad" : "");
          tile("conflicts", number(status.conflicts));
          tile("differences", number(status.divergences), status.divergences > 0 ? "bad" : "");
          if (progress.snapshot && !progress.snapshot.finished) {
            tile("snapshot", progress.snapshot.messages + " of " + progress.snapshot.messageCount);
          } else {
            $("tile-snapshot")?.remove();
          }
          const now = performance.now() / 1000;
          if (last && now > last.now) {
            history.push({
              lag, waiting: status.unpublished,
              published: Math.max(0, progress.acknowledged - last.acknowledged) / (now - last.now),
              applied: Math.max(0, progress.applied - last.applied) / (now - last.now),
            });
            if (history.length > points) history.shift();
          }
          last = { now, acknowledged: progress.acknowledged, applied: progress.applied };
          const newest = history[history.length - 1] || { published: 0, applied: 0 };
          set($("readNow"), number(lag));
          set($("publishNow"), number(status.unpublished));
          set($("publishedNow"), number(newest.published));
          set($("appliedNow"), number(newest.applied));
          const values = (name) => history.map((each) => each[name]);
          chart("lag",
            "Waiting messages over the last minutes: now " + lag + " to read, " + status.unpublished + " to publish",
            [{ values: values("lag"), className: "stroke-one" },
             { values: values("waiting"), className: "stroke-two" }]);
          chart("rate",
            "Transactions per second: applied " + number(newest.applied) + ", published " + number(newest.published),
            [{ values: values("applied"), className: "stroke-one" },
             { values: values("published"), className: "stroke-two" }]);
          rows("nodes", status.origins, "No other node has been heard from yet.", (row, origin) => {
            add(row, "td", origin.name || origin.node).title = origin.node;
            add(row, "td", undefined, "time").title = origin.heard || "";
            add(row, "td", number(origin.applied));
            const gaps = origin.gaps.map((gap) => gap[0] === gap[1] ? gap[0] : gap[0] + "–" + gap[1]).join(", ");
            add(row, "td", gaps || "nothing", gaps ? "bad" : "none");
          });
          // Goes on though the list is the same.
          [...$("nodes").rows].forEach((row, i) => {
            if (status.origins[i]) set(row.cells[1], ago(status.origins[i].heard));
          });
        }
        function showWrong(list) {
          const known = list.join("\n");
          if ($("reasons").known === known) return;
          $("reasons").known = known;
          $("reasons").replaceChildren();
          for (const message of list) add($("reasons"), "li", message);
        }

        const done = { insert: "inserted", update: "changed", delete: "deleted" };
        function showActivity(activity) {
          rows("stream", activity.transactions, "Nothing has changed yet.", (row, transaction) => {
            time(row, transaction.time);
            add(row, "td", transaction.remote ? transaction.origin || "another node" : "here");
            add(row, "td", transaction.author || "another program", transaction.author ? undefined : "none");
            const what = transaction.changes.map((change) =>
              (change.table || "(no longer tracked)") + ": " + number(change.count) + " " + done[change.kind]);
            add(row, "td", what.join(", ") + (transaction.cut ? ", and more" : ""));
          });
          const aside = activity.parked.map((item) => ({
            time: item.time, what: item.id + (item.table ? " of " + item.table : ""),
            reason: item.reason + (item.detail ? ": " + item.detail : ""), bad: false,
          })).concat(activity.quarantined.map((item) => ({
            time: item.time,
            what: "message " + item.id + " (partition " + item.partition + ", offset " + item.offset + ")",
            reason: item.reason, bad: true,
          })));
          rows("aside", aside, "Nothing is parked or quarantined.", (row, item) => {
            time(row, item.time);
            add(row, "td", item.what);
            add(row, "td", item.reason, item.bad ? "bad" : "warn");
          });
          $("s-aside").hidden = aside.length === 0;
          $("retry").hidden = !hasToken() || activity.quarantined.length === 0;
          const locked = "To make changes here and to see values, give the agent a token (http.tokenFile).";
          set($("asideHint"), hasToken() || activity.quarantined.length === 0 ? "" : locked);
          set($("conflictHint"), hasToken() || activity.conflicts.length === 0 ? "" : locked);
          rows("conflicts", activity.conflicts, "Merging overruled nothing.", (row, conflict) => {
            time(row, conflict.time);
            const where = conflict.table + (conflict.column ? "." + conflict.column : "");
            const kind = conflict.kind === "attribute" ? "" : " (" + conflict.kind + ")";
            add(row, "td", where + ("row" in conflict ? " of " + identity(conflict.row) : "") + kind);
            add(row, "td", "overruled" in conflict
              ? text(conflict.overruled) + " (" + (conflict.loser || "?") + ")" : conflict.loser || "?");
            add(row, "td", conflict.winner || "?");
            add(row, "td", "current" in conflict ? text(conflict.current) : "–",
              "current" in conflict ? undefined : "none");
            const cell = add(row, "td", conflict.reapplied ? "reapplied" : undefined);
            if (hasToken() && conflict.column && !conflict.reapplied) {
              const button = add(cell, "button", "Reapply");
              button.type = "button";
              button.setAttribute("aria-label",
                "Reapply: set " + where + " to the value of " + (conflict.loser || "the other node"));
              button.addEventListener("click", () => change("conflicts/" + conflict.id + "/reapply", button));
            }
          });
        }
        const identity = (row) => Array.isArray(row) ? row.map(text).join(", ") : text(row);
        function text(value) {
          if (value === null) return "nothing";
          const all = typeof value === "string" ? value : JSON.stringify(value);
          return all.length > 80 ? all.slice(0, 80) + "…" : all;
        }

        const hasToken = () => sessionStorage.getItem("martlet.token") !== null;
        async function change(path, button) {
          button.disabled = true;
          try {
            const token = sessionStorage.getItem("martlet.token");
            const answer = await fetch(path, { method: "POST", headers: { Authorization: "Bearer " + token } });
            const said = await answer.text();
            $("said").textContent = answer.ok ? result(path, said) : said;
            // What is shown is at most a second old.
            setTimeout(refresh, 1100);
          } catch (error) {
            $("said").textContent = error.message;
          } finally {
            button.disabled = false;
          }
        }
        function result(path, said) {
          if (path !== "quarantine/retry") return "Done: the overruled value was reapplied.";
          const { applied, parked, superseded, kept } = JSON.parse(said);
          return "Retried: " + [[applied, "applied"], [parked, "parked"], [superseded, "no longer needed"],
            [kept, "still not decoded or verified"]]
            .filter(([count, name]) => count > 0 || name === "applied")
            .map(([count, name]) => number(count) + " " + name).join(", ") + ".";
        }
        async function digest() {
          try {
            const answer = await get("digest");
            $("digestNow").textContent = answer.problem
              || (answer.digest ? answer.digest + " at " + new Date(answer.time).toLocaleTimeString() : "") || "…";
            if (answer.running) setTimeout(digest, 1000);
          } catch (error) {
            $("digestNow").textContent = error.message;
          }
        }

        async function get(path) {
          const token = sessionStorage.getItem("martlet.token");
          const answer = await fetch(path, {
            cache: "no-store", headers: token ? { Authorization: "Bearer " + token } : {}
          });
          if (answer.status === 401) {
            $("loginError").textContent = token ? "Wrong token." : "";
            sessionStorage.removeItem("martlet.token");
            $("login").hidden = false;
            $("main").hidden = $("buttons").hidden = true;
            throw new Error("the token is missing");
          }
          if (!answer.ok) throw new Error(await answer.text());
          return answer.json();
        }
        async function refresh() {
          if (paused || document.hidden || !$("login").hidden) return;
          try {
            showStatus(await get("status"));
            showActivity(await get("activity"));
          } catch (error) {
            const isLocked = !$("login").hidden;
            badge(isLocked ? "locked" : "no answer", isLocked ? "warn" : "bad");
            if (!isLocked) showWrong([
              (answered ? "The agent does not answer; this page shows its state at " + answered + ". " : "")
              + error.message]);
          }
        }
        $("pause").addEventListener("click", () => {
          paused = !paused;
          $("pause").setAttribute("aria-pressed", String(paused));
          $("pause").textContent = paused ? "Resume" : "Pause";
          if (!paused) refresh();
        });
        $("retry").addEventListener("click", () => change("quarantine/retry", $("retry")));
        $("digest").addEventListener("click", digest);
        $("login").addEventListener("submit", (event) => {
          event.preventDefault();
          sessionStorage.setItem("martlet.token", $("token").value.trim());
          $("token").value = "";
          $("login").hidden = true;
          $("main").hidden = $("buttons").hidden = false;
          refresh();
        });
        refresh();
        setInterval(refresh, 2000);
        """#
}
