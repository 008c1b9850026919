"""Every program of README.md, run in a process of its own."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_program(number: int, tmp_path: Path) -> None:
    program = PROGRAMS[number]
    if "pyspark" in program and (importlib.util.find_spec("pyspark") is None or shutil.which("java") is None):
        pytest.skip("pyspark and java are not both here")
    paths = [str(Path(path).resolve()) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_programs_are_found() -> None:
    assert len(PROGRAMS) == 9
