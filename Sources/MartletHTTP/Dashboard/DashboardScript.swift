/// What the dashboard does: asks every two seconds, and shows the answers.
///
/// Names come from other nodes and from tables: they are only ever set as `textContent`.
enum DashboardScript {
    static let text = #"""
        "use strict";
        const $ = (id) => document.getElementById(id);
        const points = 150;
        const history = [];
        let paused = false;
        let last = null;

        function add(parent, tag, text, className) {
          const element = document.createElement(tag);
          if (text !== undefined && text !== null) element.textContent = String(text);
          if (className) element.className = className;
          parent.append(element);
          return element;
        }
        function rows(id, list, none, columns, make) {
          const body = $(id);
          body.replaceChildren();
          for (const item of list) make(add(body, "tr"), item);
          if (list.length === 0) add(add(body, "tr"), "td", none, "none").colSpan = columns;
        }
        function time(row, text) {
          const date = new Date(text);
          const cell = add(row, "td", text ? date.toLocaleString() : "never", "time");
          if (text) cell.title = text;
        }
        function ago(text) {
          if (!text) return "never";
          const seconds = Math.max(0, (Date.now() - new Date(text)) / 1000);
          if (seconds < 90) return Math.round(seconds) + " s ago";
          if (seconds < 5400) return Math.round(seconds / 60) + " min ago";
          if (seconds < 129600) return Math.round(seconds / 3600) + " h ago";
          return Math.round(seconds / 86400) + " days ago";
        }
        function tile(name, value, isBad) {
          const box = add($("tiles"), "div", undefined, "tile");
          add(box, "b", value, isBad ? "bad" : undefined);
          add(box, "span", name);
        }
        const sum = (list, of) => list.reduce((total, item) => total + of(item), 0);
        const number = (value) => value.toLocaleString(undefined, { maximumFractionDigits: 1 });

        function line(svg, values, most, className) {
          const polyline = document.createElementNS(svg.namespaceURI, "polyline");
          const step = 300 / (points - 1);
          const first = points - values.length;
          polyline.setAttribute("points", values.map((value, i) =>
            ((first + i) * step).toFixed(1) + "," + (98 - 94 * value / most).toFixed(1)).join(" "));
          polyline.setAttribute("class", className);
          svg.append(polyline);
        }
        function chart(id, label, lines) {
          const svg = $(id);
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
          for (const each of lines) line(svg, each.values, most, each.className);
        }

        function showStatus(status) {
          const progress = status.progress;
          $("name").textContent = status.name || "Martlet";
          document.title = (status.ready ? "" : "! ") + (status.name || "Martlet");
          $("about").textContent = (status.node || "") + " · " + new Date().toLocaleTimeString();
          $("ready").textContent = status.ready ? "in step" : "not ready";
          $("ready").className = "badge " + (status.ready ? "good" : "bad");
          $("reasons").replaceChildren();
          for (const reason of status.reasons) add($("reasons"), "li", reason.message);
          const lag = sum(progress.lags, (each) => each.messages);
          const late = Math.max(0, ...progress.lags.map((each) => each.seconds));
          const missing = sum(status.origins, (origin) => sum(origin.gaps, (gap) => gap[1] - gap[0] + 1));
          $("tiles").replaceChildren();
          tile("to publish", number(status.unpublished));
          tile("to read", number(lag));
          tile("behind", number(late) + " s", late > 300);
          tile("parked", number(status.parked));
          tile("quarantined", number(status.quarantined), status.quarantined > 0);
          tile("missing", number(missing), missing > 0);
          tile("conflicts", number(status.conflicts));
          tile("differences", number(status.divergences), status.divergences > 0);
          if (progress.snapshot && !progress.snapshot.finished) {
            tile("snapshot", progress.snapshot.messages + " of " + progress.snapshot.messageCount);
          }
          const now = performance.now() / 1000;
          if (last && now > last.now) {
            history.push({
              lag, published: Math.max(0, progress.acknowledged - last.acknowledged) / (now - last.now),
              applied: Math.max(0, progress.applied - last.applied) / (now - last.now),
            });
            if (history.length > points) history.shift();
          }
          last = { now, acknowledged: progress.acknowledged, applied: progress.applied };
          const newest = history[history.length - 1] || { lag, published: 0, applied: 0 };
          $("lagNow").textContent = number(lag);
          $("rateNow").textContent = number(newest.published) + " / " + number(newest.applied);
          chart("lag", "Messages that wait, over the last minutes: now " + lag,
            [{ values: history.map((each) => each.lag), className: "stroke-one" }]);
          chart("rate", "Transactions a second: published " + number(newest.published) + ", applied " + number(newest.applied), [
            { values: history.map((each) => each.published), className: "stroke-one" },
            { values: history.map((each) => each.applied), className: "stroke-two" },
          ]);
          rows("nodes", status.origins, "No other node was heard of yet.", 4, (row, origin) => {
            add(row, "td", origin.name || origin.node).title = origin.node;
            add(row, "td", ago(origin.heard), "time").title = origin.heard || "";
            add(row, "td", number(origin.applied));
            const gaps = origin.gaps.map((gap) => gap[0] === gap[1] ? gap[0] : gap[0] + "–" + gap[1]).join(", ");
            add(row, "td", gaps || "nothing", gaps ? "bad" : "none");
          });
        }

        const done = { insert: "inserted", update: "changed", delete: "deleted" };
        function showActivity(activity) {
          rows("stream", activity.transactions, "Nothing was changed yet.", 4, (row, transaction) => {
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
            time: item.time, what: "message " + item.id + " (partition " + item.partition + ", offset " + item.offset + ")",
            reason: item.reason, bad: true,
          })));
          rows("aside", aside, "Nothing is kept aside.", 3, (row, item) => {
            time(row, item.time);
            add(row, "td", item.what);
            add(row, "td", item.reason, item.bad ? "bad" : "warn");
          });
          $("retry").hidden = !hasToken() || activity.quarantined.length === 0;
          const shown = (conflict, name) => name in conflict ? ": " + text(conflict[name]) : "";
          rows("conflicts", activity.conflicts, "Merging overruled nothing.", 5, (row, conflict) => {
            time(row, conflict.time);
            const where = conflict.table + (conflict.column ? "." + conflict.column : "");
            add(row, "td", where + ("row" in conflict ? " of " + text(conflict.row) : "") + " (" + conflict.kind + ")");
            add(row, "td", (conflict.loser || "?") + shown(conflict, "overruled") + (conflict.reapplied ? ", taken back" : ""));
            add(row, "td", (conflict.winner || "?") + shown(conflict, "current"));
            const cell = add(row, "td");
            if (hasToken() && conflict.column && !conflict.reapplied) {
              const button = add(cell, "button", "Take back");
              button.type = "button";
              button.setAttribute("aria-label", "Set " + where + " to the value of " + (conflict.loser || "the other node"));
              button.addEventListener("click", () => change("conflicts/" + conflict.id + "/reapply", button));
            }
          });
        }
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
            $("said").textContent = answer.ok ? "Done. " + (path === "quarantine/retry" ? said : "") : said;
            // What is shown is at most a second old.
            setTimeout(refresh, 1100);
          } catch (error) {
            $("said").textContent = error.message;
          } finally {
            button.disabled = false;
          }
        }
        async function digest() {
          try {
            const answer = await get("digest");
            $("digestNow").textContent = answer.problem || (answer.digest ? answer.digest + " at " + new Date(answer.time).toLocaleTimeString() : "") || "…";
            if (answer.running) setTimeout(digest, 1000);
          } catch (error) {
            $("digestNow").textContent = error.message;
          }
        }

        async function get(path) {
          const token = sessionStorage.getItem("martlet.token");
          const answer = await fetch(path, { cache: "no-store", headers: token ? { Authorization: "Bearer " + token } : {} });
          if (answer.status === 401) {
            $("loginError").textContent = token ? "This is not the token." : "";
            sessionStorage.removeItem("martlet.token");
            $("login").hidden = false;
            $("unlock").hidden = true;
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
            $("ready").textContent = $("login").hidden ? "no answer" : "locked";
            $("ready").className = "badge warn";
            $("about").textContent = error.message;
          }
        }
        $("pause").addEventListener("click", () => {
          paused = !paused;
          $("pause").setAttribute("aria-pressed", String(paused));
          $("pause").textContent = paused ? "Go on" : "Pause";
          if (!paused) refresh();
        });
        $("retry").addEventListener("click", () => change("quarantine/retry", $("retry")));
        $("digest").addEventListener("click", digest);
        $("unlock").addEventListener("click", () => {
          $("login").hidden = false;
          $("token").focus();
        });
        $("login").addEventListener("submit", (event) => {
          event.preventDefault();
          sessionStorage.setItem("martlet.token", $("token").value.trim());
          $("token").value = "";
          $("login").hidden = true;
          $("unlock").hidden = true;
          refresh();
        });
        $("unlock").hidden = hasToken();
        refresh();
        setInterval(refresh, 2000);
        """#
}
