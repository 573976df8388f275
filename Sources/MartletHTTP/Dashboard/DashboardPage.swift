import Crypto
import Foundation

/// The page at `/`: one document that fetches nothing but the agent's own JSON, and allows nothing else to be fetched.
///
/// It contains no data itself, so it is served without the token. If the agent requires a token, the page asks for it,
/// and keeps it for as long as the tab is open. Everything that comes from the store is set as text, never as HTML.
package enum DashboardPage {
    package static let response = HTTPResponse(
        200, "text/html; charset=utf-8", html, headers: ["Content-Security-Policy": policy])

    /// Allows only this script and this style, by their digests.
    private static let policy =
        "default-src 'none'; script-src '\(digest(DashboardScript.text))'; style-src '\(digest(DashboardStyle.text))'; "
        + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    private static func digest(_ text: String) -> String {
        "sha256-" + Data(SHA256.hash(data: Data(text.utf8))).base64EncodedString()
    }

    private static let html = """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>Martlet</title>
        <style>\(DashboardStyle.text)</style>
        </head>
        <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header>
        <h1><span id="name">Martlet</span> <span id="ready" class="badge" role="status">…</span></h1>
        <div id="buttons">
        <button id="pause" type="button" aria-pressed="false">Pause</button>
        <button id="digest" type="button">Digest</button>
        </div>
        <p id="about"></p>
        <p><output id="digestNow"></output> <span id="said" role="status"></span></p>
        </header>
        <noscript><p>This page needs JavaScript.
        <a href="status">/status</a> has the same data without it.</p></noscript>
        <form id="login" hidden>
        <label for="token">Token of this agent (http.tokenFile)</label>
        <input id="token" type="password" autocomplete="off" required aria-describedby="loginError">
        <button type="submit">Show</button>
        <p id="loginError" role="alert"></p>
        </form>
        <main id="main" tabindex="-1">
        <ul id="reasons" aria-label="Problems"></ul>
        <section id="tiles" aria-label="Figures"></section>
        <section id="s-aside" hidden><h2 id="h-aside">Parked and quarantined</h2>
        <p class="hint" id="asideHint"></p>
        <button id="retry" type="button" hidden>Retry quarantined messages</button>
        <div class="scroll" tabindex="0" role="region" aria-labelledby="h-aside">
        <table><thead><tr><th>Since<th>What<th>Reason</tr></thead><tbody id="aside"></tbody></table></div></section>
        <section class="charts" aria-label="Charts">
        <figure><figcaption>Waiting messages <span class="most"></span></figcaption><svg id="lag" role="img"></svg>
        <p class="axis-names" aria-hidden="true"><span class="begin"></span><span>now</span></p>
        <p class="legend"><span class="key one"></span>to read <output id="readNow"></output>
        <span class="key two"></span>to publish <output id="publishNow"></output></p></figure>
        <figure><figcaption>Transactions per second <span class="most"></span></figcaption>
        <svg id="rate" role="img"></svg>
        <p class="axis-names" aria-hidden="true"><span class="begin"></span><span>now</span></p>
        <p class="legend"><span class="key one"></span>applied <output id="appliedNow"></output>
        <span class="key two"></span>published <output id="publishedNow"></output></p></figure>
        </section>
        <section><h2 id="h-nodes">Nodes</h2><div class="scroll" tabindex="0" role="region" aria-labelledby="h-nodes">
        <table><thead><tr><th>Node<th>Last heard<th>Applied up to<th>Missing</tr></thead>
        <tbody id="nodes"></tbody></table></div></section>
        <section><h2 id="h-conflicts">Conflicts</h2>
        <p class="hint" id="conflictHint"></p>
        <div class="scroll" tabindex="0" role="region" aria-labelledby="h-conflicts">
        <table><thead><tr><th>When<th>Where<th>Overruled<th>By<th>Now<th><span class="unseen">Change</span></tr></thead>
        <tbody id="conflicts"></tbody></table></div></section>
        <section><h2 id="h-stream">Transactions</h2>
        <div class="scroll" tabindex="0" role="region" aria-labelledby="h-stream">
        <table><thead><tr><th>When<th>Where<th>Who<th>What</tr></thead>
        <tbody id="stream"></tbody></table></div></section>
        </main>
        <script>\(DashboardScript.text)</script>
        </body>
        </html>
        """
}
