#!/bin/sh
# Makes the passwords that compose.yaml reads from docker/secrets; those that are there already are left as they are.
set -eu
cd "$(dirname "$0")"

# Nobody else may enter the folder, so the files themselves can be readable: compose shows them to the containers,
# whose users have other numbers, with the permissions they have here.
mkdir -p secrets
chmod 700 secrets
for name in trivet_api_key neo4j_password qdrant_api_key searxng_secret; do
    if [ ! -s "secrets/$name" ]; then
        od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"secrets/$name"
        chmod 644 "secrets/$name"
        echo "made docker/secrets/$name"
    fi
done
[ -f .env ] || { cp .env.example .env && echo "made docker/.env"; }
