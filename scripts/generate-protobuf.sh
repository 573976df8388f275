#!/usr/bin/env bash
# Generates the Swift code of the wire format from proto/. Run it after a change there, and commit what it makes.
# Needs protoc (Debian: protobuf-compiler); builds swift-protobuf's plugin on first use.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v protoc >/dev/null || { echo "protoc is missing: apt-get install protobuf-compiler" >&2; exit 1; }
swift build --product protoc-gen-swift
protoc --plugin=.build/debug/protoc-gen-swift --swift_out=Sources/MartletWire/Generated \
    --swift_opt=FileNaming=DropPath --swift_opt=Visibility=Package --swift_opt=UseAccessLevelOnImports=true --proto_path=proto martlet/v1/transaction.proto martlet/v1/snapshot.proto martlet/v1/check.proto
