#!/usr/bin/env bash
# sbom.sh FILE: writes an SBOM of this system as SPDX 2.3 (JSON): lockstep and every installed Debian package, with versions and
# source packages. The Dockerfile runs it in the image, with the build arguments VERSION and CREATED.
set -euo pipefail

# shellcheck disable=SC2016  # dpkg-query's own format
packages=$(dpkg-query -W -f='${db:Status-Abbrev}|${Package}|${Version}|${Architecture}|${source:Package}|${source:Version}\n' |
  sed -n 's/^ii *|//p' | sort)
# shellcheck source=/dev/null
read -r id release <<<"$(. /etc/os-release; echo "$ID ${VERSION_ID:-unknown}")"

# package ID NAME VERSION PURL
package() {
  printf '    {"SPDXID": "%s", "name": "%s", "versionInfo": "%s", "downloadLocation": "NOASSERTION", "filesAnalyzed": false,' "$1" "$2" "$3"
  printf ' "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "%s"}]}' "$4"
}

# purl: package URL of the current package of the loop below.
purl() {
  local found="pkg:deb/$id/$name@$version?arch=$architecture&upstream=$source%40$source_version&distro=$id-$release"
  found=${found//+/%2B}
  local rest=${found#*:}
  printf '%s:%s' "${found%%:*}" "${rest//:/%3A}"
}

created=${CREATED:-unknown}
[ "$created" != unknown ] || created=1970-01-01T00:00:00Z
mkdir -p "$(dirname "$1")"
digest=$(printf '%s\n' "${VERSION:-unknown}" "$packages" | sha256sum | cut -c1-32)
{
  printf '{\n  "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "lockstep",\n'
  printf '  "documentNamespace": "https://spdx.org/spdxdocs/lockstep-%s",\n' "$digest"
  printf '  "creationInfo": {"created": "%s", "creators": ["Tool: docker/sbom.sh"]},\n  "packages": [\n' "$created"
  package SPDXRef-lockstep lockstep "${VERSION:-unknown}" "pkg:generic/lockstep@${VERSION:-unknown}"
  relations='{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-lockstep"}'
  while IFS='|' read -r name version architecture source source_version; do
    element=SPDXRef-${name//[^A-Za-z0-9.-]/-}-$architecture
    printf ',\n'
    package "$element" "$name" "$version" "$(purl)"
    relations+=$',\n    '"{\"spdxElementId\": \"SPDXRef-lockstep\", \"relationshipType\": \"DEPENDS_ON\", \"relatedSpdxElement\": \"$element\"}"
  done <<<"$packages"
  printf '\n  ],\n  "relationships": [\n    %s\n  ]\n}\n' "$relations"
} >"$1"
