/// The style of the dashboard: light or dark like the system, from a phone's width up.
enum DashboardStyle {
    static let text = """
        :root { --bg: #f6f7f9; --card: #fff; --text: #1b1f24; --dim: #57606a; --line: #d0d7de; --edge: #7d8590;
          --good: #1a7f37; --bad: #b3261e; --warn: #8a5300; --one: #0969da; --two: #bc4c00; }
        @media (prefers-color-scheme: dark) { :root {
          --bg: #0f1318; --card: #181d24; --text: #e6e9ed; --dim: #9aa4af; --line: #323a44; --edge: #76808c;
          --good: #57c26f; --bad: #ff8a80; --warn: #f0b458; --one: #6cb2ff; --two: #ffa266; } }
        * { box-sizing: border-box; }
        body { margin: 0; padding: 1rem clamp(0.75rem, 3vw, 2rem) 4.5rem; background: var(--bg); color: var(--text);
          font: 15px/1.45 system-ui, sans-serif; }
        header { display: flex; flex-wrap: wrap; gap: 0.4rem 1rem; align-items: center;
          justify-content: space-between; }
        #buttons { display: flex; gap: 0.5rem; }
        h1 { font-size: 1.4rem; margin: 0; overflow-wrap: anywhere; }
        h2 { font-size: 1rem; margin: 0 0 0.5rem; }
        header p { margin: 0; color: var(--dim); flex: 1 0 100%; overflow-wrap: anywhere; font-size: 0.85rem; }
        header p:not(:has(:not(:empty))):not(#about) { display: none; }
        #said:not(:empty) { position: fixed; left: 50%; bottom: 0.75rem; transform: translateX(-50%);
          width: max-content; max-width: 92vw; padding: 0.5rem 1rem; border: 1px solid var(--edge); border-radius: 10px;
          background: var(--card); color: var(--text); }
        #loginError { margin: 0; color: var(--bad); } #loginError:empty { display: none; }
        button, input { font: inherit; color: inherit; background: var(--card);
          border: 1px solid var(--edge); border-radius: 6px; padding: 0.35rem 0.8rem; }
        :focus-visible { outline: 3px solid var(--one); outline-offset: 2px; }
        .skip { position: absolute; left: -99rem; }
        .skip:focus { left: 1rem; top: 0.5rem; background: var(--card); padding: 0.3rem 0.6rem; }
        .badge { font-size: 0.8rem; font-weight: 600; padding: 0.15rem 0.6rem; border-radius: 1rem;
          border: 1px solid currentColor; vertical-align: middle; color: var(--dim); white-space: nowrap; }
        .good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
        #reasons { color: var(--bad); list-style: none; padding: 0.6rem 1rem; margin: 0.75rem 0 0;
          background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--bad);
          border-radius: 10px; overflow-wrap: anywhere; }
        #reasons:empty { display: none; }
        .hint { margin: 0 0 0.5rem; color: var(--dim); font-size: 0.85rem; } .hint:empty { display: none; }
        .unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
        #tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: 0.75rem;
          margin: 1rem 0; }
        .tile, figure, main section:not(#tiles, .charts), form { background: var(--card); border: 1px solid var(--line);
          border-radius: 10px; padding: 0.8rem 1rem; margin: 0; }
        .tile b { display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums; }
        .tile span { color: var(--dim); font-size: 0.85rem; }
        .charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 0.75rem; }
        main section { margin-top: 0.75rem !important; }
        section[hidden], main[hidden], #buttons[hidden] { display: none; }
        figcaption { color: var(--dim); } .most { float: right; font-size: 0.85rem; }
        .legend output { color: var(--text); font-variant-numeric: tabular-nums; margin-right: 0.8rem; }
        .axis-names { display: flex; justify-content: space-between; margin: 0.2rem 0 0; color: var(--dim);
          font-size: 0.75rem; }
        svg { display: block; width: 100%; height: 7rem; margin-top: 0.4rem; }
        polyline { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; }
        .stroke-one { stroke: var(--one); } .stroke-two { stroke: var(--two); stroke-dasharray: 6 3; }
        .axis { stroke: var(--line); vector-effect: non-scaling-stroke; }
        .legend { margin: 0.3rem 0 0; color: var(--dim); font-size: 0.85rem; }
        .key { display: inline-block; width: 1.2rem; border-top: 3px solid var(--one); vertical-align: middle;
          margin-right: 0.3rem; }
        .key.two { border-top: 3px dashed var(--two); }
        .scroll { overflow: auto; max-height: 24rem; }
        table { width: 100%; border-collapse: collapse; }
        th { text-align: left; color: var(--dim); font-weight: 500; font-size: 0.85rem; position: sticky; top: 0;
          background: var(--card); }
        th, td { padding: 0.3rem 0.8rem 0.3rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
          overflow-wrap: anywhere; min-width: 4.5rem; }
        td.time { white-space: nowrap; font-variant-numeric: tabular-nums; }
        td button { padding: 0.1rem 0.6rem; }
        #retry { margin-bottom: 0.5rem; }
        @media (max-width: 40rem) {
          header p { font-size: 0.75rem; }
          #tiles { grid-template-columns: repeat(4, 1fr); gap: 0.4rem; }
          .tile { padding: 0.4rem 0.3rem; text-align: center; }
          .tile b { font-size: 1.1rem; } .tile span { font-size: 0.75rem; }
          /* A row is a block, and its cells are lines that begin with the column's name. */
          table, tbody, tr, td { display: block; } thead { display: none; }
          tr { border-bottom: 1px solid var(--line); padding: 0.4rem 0; } tr:last-child { border: 0; }
          td { border: 0; padding: 0.05rem 0; display: grid; grid-template-columns: 6.5rem 1fr; }
          td[colspan], td:empty { display: block; }
          td[data-label]::before { content: attr(data-label); color: var(--dim); font-size: 0.85rem; }
          td:has(button) { margin-top: 0.3rem; } td button { justify-self: start; padding: 0.35rem 0.8rem; }
          td:empty { display: none; }
        }
        .none { color: var(--dim); }
        form { max-width: 26rem; margin: 1rem 0; display: grid; gap: 0.5rem; } form[hidden] { display: none; }
        """
}
