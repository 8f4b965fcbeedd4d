"""Files beside ``$0``: a job runs a copy of its script in a spool folder."""

from __future__ import annotations

import pytest
from convert.conversions import convert, job_file

from jobgen.check.checker import check

SLURM = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --time=01:00:00\nset -euo pipefail\n"
PBS = "#!/bin/bash\n#PBS -l select=1:ncpus=4\n#PBS -l walltime=01:00:00\nset -euo pipefail\n"

FOUND = [
    'cd "${BASH_SOURCE%/*}"\n./a',
    '. "${0%/*}/env.sh"\n./a',
    'cd "$(dirname -- "${BASH_SOURCE[0]}")" || exit 1\n./a',
    "cd `dirname $0`\n./a",
    "pushd $(dirname $0) > /dev/null\n./a",
    'D="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"\nbash "$D/run.sh"',
    "D=$(cd `dirname $0`; pwd)\napptainer exec -B $D:/work i.sif python /work/a.py",
    'D="$(dirname "$0")"\nROOT=$(cd "$D"/..; pwd)\nexport PYTHONPATH="$ROOT:${PYTHONPATH:-}"\npython a.py',
    "self=`realpath $0`\nhere=`dirname $self`\n$here/run.sh",
    'main() {\n  local d; d=$(dirname "$0")\n  "$d/a"\n}\nmain "$@"',
    'while read -r x; do ./a "$x"; done < "$(dirname "$0")/list.txt"',
    "D=$(dirname $0)\nCONFIG=$D/config.yaml\npython a.py --config $CONFIG",
    'export ROOT="$(dirname "$0")/.."\n./a',
]
SILENT = [
    'cd "${PBS_O_WORKDIR:-$(dirname "$0")}"\n./a',
    "echo $(dirname $0)\n./a",
    "if [ -f $(dirname $0)/env.sh ]; then source $(dirname $0)/env.sh; fi\n./a",
    "D=$(dirname $0)\n[[ -e $D/env.sh ]] && source $D/env.sh\n./a",
    'if [ -n "$1" ]; then D=$1; else D=$(dirname "$0"); fi\ncd "$D"\n./a',
    'D=$(dirname $0)\nif [[ $D == */spool/* ]]; then D=$2; fi\ncd "$D"\n./a',
    'cp "$0" out/\nsed -n "s/^##//p" "$0"\n./a > $(basename "$0" .sh).log',
    'cp "$(cd "$(dirname "$0")" && pwd)/$(basename "$0")" out/\n./a',
    "for f in *.in; do bash -c 'cd $0; ./a' $f; done",
    "cd $(dirname $F)\n./a",
]


def lines(text: str) -> list[int]:
    return [one.line for one in check(text.encode(), "j.sh") if one.rule == "own-folder"]


@pytest.mark.parametrize("head", [SLURM, PBS])
@pytest.mark.parametrize("code", FOUND)
def test_a_use_of_the_folder_is_found_once(code: str, head: str) -> None:
    assert len(lines(f"{head}{code}\n")) == 1


@pytest.mark.parametrize("code", SILENT)
def test_another_use_of_the_path(code: str) -> None:
    assert lines(f"{PBS}{code}\n") == []


def test_a_script_of_a_shell_has_its_own_folder() -> None:
    assert lines(f"#!/bin/bash\n{FOUND[0]}\n") == []


def test_conversions_say_that_the_files_are_not_there() -> None:
    text = f"{SLURM}{FOUND[1]}\n"
    for done in (convert(text, "pbspro"), job_file(text)):
        assert [(one.line, one.lost) for one in done.remarks if "spool" in one.why] == [(5, False)]
