"""The notebook, run cell by cell on the record that PGRIG_RECORD names."""

import ast
import json
import os
from pathlib import Path

NOTEBOOK = Path(__file__).parent.parent / "first_picture.ipynb"


def test_the_notebook_draws_every_round(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    # It is run in python/, and takes the newest record of runs/ beside it.
    (tmp_path / "python").mkdir()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "one").symlink_to(os.environ["PGRIG_RECORD"])
    monkeypatch.chdir(tmp_path / "python")
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    names = {}
    shown = []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, NOTEBOOK.name, "exec"), names)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names))
    drawn = [y for line in names["axes"].get_lines() for y in line.get_ydata()]
    done = names["record"].trials.query("ending == 'done'")
    assert sorted(drawn) == sorted(done["tps"])
    assert len(shown[-1]) == len(names["record"].claims) > 0
