// swift-tools-version: 6.2
import PackageDescription

// All decoders of untrusted input, under libFuzzer. `make fuzz` builds this package with `--sanitize=fuzzer`, which
// instruments Martlet itself, too. It is a package of its own, so that other builds are unaffected.
let package = Package(
    name: "martlet-fuzz",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "martlet", path: "../.."),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    ],
    targets: [
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                .product(name: "MartletStore", package: "martlet"),
                .product(name: "MartletSync", package: "martlet"),
                .product(name: "MartletAgent", package: "martlet"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            swiftSettings: [
                .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"), .treatAllWarnings(as: .error),
            ]
        )
    ]
)
