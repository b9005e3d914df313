#!/usr/bin/env bash
# Untested: not run yet anywhere. Signs Gatewright.app and puts it into a disk image: packaging/macos/package.sh APP IMAGE
# SIGNING_IDENTITY names the certificate, else the signature is the ad-hoc one that only this machine trusts.
# NOTARY_PROFILE names credentials kept with `xcrun notarytool store-credentials`; without it nothing is notarised.
set -euo pipefail
app=$1
image=$2
identity=${SIGNING_IDENTITY:--}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

# From the inside out, since a signature covers what it holds.
find "$app/Contents" -type f \( -name '*.dylib' -o -name '*.so' \) -exec codesign --force --options runtime --timestamp --sign "$identity" {} +
codesign --force --options runtime --timestamp --entitlements "$here/entitlements.plist" --sign "$identity" "$app"
codesign --verify --deep --strict "$app"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -R "$app" "$folder/"
ln -s /Applications "$folder/Applications"
hdiutil create -volname Gatewright -srcfolder "$folder" -format UDZO -ov "$image"
if [[ -n ${NOTARY_PROFILE:-} ]]; then
  xcrun notarytool submit "$image" --keychain-profile "$NOTARY_PROFILE" --wait
  xcrun stapler staple "$image"
fi
