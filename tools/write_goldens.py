"""Write the golden scripts and recipes of tests/golden and tests/convert: ``python -m tools.write_goldens``.

Read the difference before you commit it.
"""

from __future__ import annotations

import sys

from convert import golden_cases as conversions
from golden import cases, recipes


def main() -> None:
    made = {cases.HERE / f"{name}.sh": cases.script(command) for name, command in cases.CASES.items()}
    made |= {conversions.golden(*case): conversions.result(*case) for case in conversions.CASES}
    made |= {recipes.HERE / name: recipes.text(options) for name, options in recipes.CASES.items()}
    folders = (recipes.HERE, conversions.HERE / "golden")
    for path in {*cases.HERE.glob("*.sh"), *(path for one in folders for path in one.iterdir())} - set(made):
        path.unlink()
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    sys.stderr.write(f"{len(made)} files written\n")


if __name__ == "__main__":
    main()
