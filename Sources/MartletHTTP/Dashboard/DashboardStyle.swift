/// How the dashboard looks: light or dark as the system is, from a phone's width up.
enum DashboardStyle {
    static let text = """
        :root { --bg: #f6f7f9; --card: #fff; --text: #1b1f24; --dim: #57606a; --line: #d0d7de; --good: #1a7f37; --bad: #b3261e;
          --warn: #8a5300; --one: #0969da; --two: #bc4c00; }
        @media (prefers-color-scheme: dark) { :root { --bg: #0f1318; --card: #181d24; --text: #e6e9ed; --dim: #9aa4af; --line: #323a44;
          --good: #57c26f; --bad: #ff8a80; --warn: #f0b458; --one: #6cb2ff; --two: #ffa266; } }
        * { box-sizing: border-box; }
        body { margin: 0; padding: 1rem clamp(0.75rem, 3vw, 2rem) 3rem; background: var(--bg); color: var(--text);
          font: 15px/1.45 system-ui, sans-serif; }
        header { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; align-items: center; }
        h1 { font-size: 1.4rem; margin: 0; overflow-wrap: anywhere; }
        h2 { font-size: 1rem; margin: 0 0 0.5rem; }
        header p { margin: 0; color: var(--dim); flex: 1 1 12rem; overflow-wrap: anywhere; }
        button, input { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 6px;
          padding: 0.35rem 0.8rem; }
        :focus-visible { outline: 3px solid var(--one); outline-offset: 2px; }
        .skip { position: absolute; left: -99rem; }
        .skip:focus { left: 1rem; top: 0.5rem; background: var(--card); padding: 0.3rem 0.6rem; }
        .badge { font-size: 0.8rem; font-weight: 600; padding: 0.15rem 0.6rem; border-radius: 1rem; border: 1px solid currentColor;
          vertical-align: middle; color: var(--dim); white-space: nowrap; }
        .good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
        #reasons { color: var(--bad); padding-left: 1.2rem; } #reasons:empty { display: none; }
        #tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: 0.75rem; margin: 1rem 0; }
        .tile, figure, main section:not(#tiles):not(.charts), form { background: var(--card); border: 1px solid var(--line);
          border-radius: 10px; padding: 0.8rem 1rem; margin: 0; }
        .tile b { display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums; }
        .tile span { color: var(--dim); font-size: 0.85rem; }
        .charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 0.75rem; }
        main section { margin-top: 0.75rem !important; }
        figcaption { color: var(--dim); } figcaption output { float: right; color: var(--text); font-variant-numeric: tabular-nums; }
        svg { display: block; width: 100%; height: 7rem; margin-top: 0.4rem; }
        polyline { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; }
        .stroke-one { stroke: var(--one); } .stroke-two { stroke: var(--two); stroke-dasharray: 6 3; }
        .axis { stroke: var(--line); vector-effect: non-scaling-stroke; }
        .legend { margin: 0.3rem 0 0; color: var(--dim); font-size: 0.85rem; }
        .key { display: inline-block; width: 1.2rem; border-top: 3px solid var(--one); vertical-align: middle; margin-right: 0.3rem; }
        .key.two { border-top: 3px dashed var(--two); margin-left: 0.8rem; }
        .scroll { overflow: auto; max-height: 24rem; }
        table { width: 100%; border-collapse: collapse; }
        th { text-align: left; color: var(--dim); font-weight: 500; font-size: 0.85rem; position: sticky; top: 0; background: var(--card); }
        th, td { padding: 0.3rem 0.8rem 0.3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere;
          min-width: 4.5rem; }
        td.time { white-space: nowrap; font-variant-numeric: tabular-nums; }
        @media (max-width: 40rem) { td.time { white-space: normal; } th, td { overflow-wrap: break-word; } }
        .none { color: var(--dim); }
        form { max-width: 26rem; margin: 1rem 0; display: grid; gap: 0.5rem; } form[hidden] { display: none; }
        """
}
