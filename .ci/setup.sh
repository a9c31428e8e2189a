# Shared by the scripts in this folder, which source it from the root of the checkout.

say() { printf '\n== %s (%s s)\n' "$*" "$SECONDS"; }

# other people's logs and stores are not part of the project; these variables say where a machine has them
say_genuine_logs() {
    say "genuine logs: ${GPUREPORT_CORPUS:-none, their tests are skipped}"
    say "genuine stores: ${GPUREPORT_TRACKERS:-none, their tests are skipped}"
}

# programs that tests need and pip cannot install
install_programs() {
    local missing=() root=()
    command -v chromium >/dev/null || missing+=(chromium)
    command -v pdftotext >/dev/null || missing+=(poppler-utils)
    command -v sadf >/dev/null || missing+=(sysstat)
    command -v vmstat >/dev/null || missing+=(procps)
    command -v cc >/dev/null || missing+=(gcc libc6-dev)
    ((${#missing[@]})) || return 0
    ((EUID)) && root=(sudo)
    say "installing ${missing[*]}"
    "${root[@]}" apt-get update -qq
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# an S3 server and its client, in a separate environment, because they install thirty packages
install_bucket() {
    python3 -m venv "$1/s3" && "$1/s3/bin/pip" install 'moto[server]' awscli
    mkdir -p "$1/programs"
    ln -s "$PWD/$1"/s3/bin/{aws,moto_server} "$1/programs/"
    export PATH="$PWD/$1/programs:$PATH"
}

# copies the files to a folder, without those that git ignores
copy_tree() {
    mkdir -p "$1"
    git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf - | tar -xf - -C "$1"
    git -C "$1" init -q && git -C "$1" add -A
}

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1
# let Python write bytecode, as on a user's machine: the tree is only a copy
unset PYTHONDONTWRITEBYTECODE
