"""How the cells of a calendar look; what they mean is said in words, too."""

STYLE = """
.calendar { display: grid; grid-template-columns: 4.6rem 1fr; gap: 3px .3rem; align-items: center }
.calendar .cells { display: flex; flex-wrap: wrap; gap: 2px }
.cell { min-width: 1.35rem; height: 1.4rem; line-height: 1.3rem; text-align: center; border-radius: 4px;
  font-size: 11px; text-decoration: none; color: var(--text); background: var(--soft); border: 1px solid var(--line) }
.cell:focus-visible, .cell:hover { outline: 2px solid var(--trace) }
.cell.complete { background: color-mix(in srgb, var(--good) 30%, transparent) }
.cell.ingested { background: color-mix(in srgb, var(--unsealed) 40%, transparent) }
.cell.waiting { background: color-mix(in srgb, var(--unsealed) 40%, transparent); border-style: dashed }
.cell.failed, .cell.refused { background: color-mix(in srgb, var(--bad) 45%, transparent) }
.cell.missing, .cell.landed, .cell.expected, .cell.not-over { border-style: dashed; color: var(--quiet) }
.cell.hole { border: 2px dashed var(--bad); color: var(--bad) }
.cell.empty { background: none; border-color: var(--good) }
.cell.late { text-decoration: underline dotted 2px }
.cell.corrected { font-weight: 700; border: 2px solid var(--marked) }
.cell.beside { font-style: italic; border: 2px dashed var(--marked) }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin: .6rem 0 } .legend .cell { padding: 0 .4rem }
"""
