#!/bin/sh
# The image's `trivet`: a setting may come from a file (TRIVET_SERVER__API_KEY_FILE=/run/secrets/key), so that secrets
# need not stand in the environment of the container. It is in PATH, so that `docker compose exec trivet trivet …`
# reads them too.
set -eu

fail() {
    printf 'trivet: %s\n' "$1" >&2
    exit 3
}

for name in $(env | sed -n 's/^\(TRIVET_[A-Z0-9_]*\)_FILE=.*/\1/p'); do
    eval "file=\$${name}_FILE"
    if [ "$(eval "printf %s \"\${$name-}\"")" ]; then
        fail "$name and ${name}_FILE are both set; leave one of them out."
    fi
    [ -f "$file" ] || fail "${name}_FILE names $file, which is not a file."
    [ -r "$file" ] || fail "${name}_FILE names $file, which user $(id -u) may not read; chmod 644 it on the host."
    value=$(cat "$file")
    [ "$value" ] || fail "${name}_FILE names $file, which is empty."
    export "$name=$value"
    unset "${name}_FILE"
done

exec /opt/trivet/bin/trivet "$@"
