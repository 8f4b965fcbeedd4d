"""Write the golden scripts of tests/golden and tests/convert: ``python -m tools.write_goldens``.

Read the difference before you commit it.
"""

from __future__ import annotations

import sys

from convert import golden_cases as conversions
from golden import cases


def main() -> None:
    made = {cases.HERE / f"{name}.sh": cases.script(command) for name, command in cases.CASES.items()}
    made |= {conversions.golden(*case): conversions.result(*case) for case in conversions.CASES}
    for path in {*cases.HERE.glob("*.sh"), *(conversions.HERE / "golden").iterdir()} - set(made):
        path.unlink()
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    sys.stderr.write(f"{len(made)} scripts written\n")


if __name__ == "__main__":
    main()
