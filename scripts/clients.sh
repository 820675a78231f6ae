#!/usr/bin/env bash
# Generates integrations/go/client.gen.go from openapi/offshoot.json, and notes of what it was made.
#
#   scripts/clients.sh [DIRECTORY]     into another directory, an absolute one, to compare
#
# Needs Go, which fetches the generator. The Python package generates its own code whenever it is built.
set -euo pipefail
cd "$(dirname "$0")/../integrations/go"
generator=github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2
into=${1:-.}
go run "$generator" -config oapi-codegen.yaml -o "$into/client.gen.go" ../../openapi/offshoot.json
# tests/testbed/tests/clients.rs looks at this, as it needs neither Go nor a network.
sums=$(sha256sum ../../openapi/offshoot.json oapi-codegen.yaml; cd "$into"; sha256sum client.gen.go)
printf '%s\n' "$sums" >"$into/client.sha256"
