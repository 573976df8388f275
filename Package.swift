// swift-tools-version: 6.2
import CompilerPluginSupport
import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "martlet",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "MartletCore", targets: ["MartletCore"]),
        .library(name: "MartletBus", targets: ["MartletBus"]),
        .library(name: "MartletStore", targets: ["MartletStore"]),
        .library(name: "MartletSync", targets: ["MartletSync"]),
        .library(name: "MartletKafka", targets: ["MartletKafka"]),
        .library(name: "MartletSimulator", targets: ["MartletSimulator"]),
        .library(name: "MartletAgent", targets: ["MartletAgent"]),
        .library(name: "MartletHTTP", targets: ["MartletHTTP"]),
        .library(name: "MartletData", targets: ["MartletData"]),
        .library(name: "SwiftData", targets: ["SwiftData"]),
        .executable(name: "martlet", targets: ["martlet"]),
        .executable(name: "martlet-simulate", targets: ["martlet-simulate"]),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-crypto", "4.5.2"..<"5.0.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/swiftlang/swift-syntax", from: "603.0.1"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    ],
    targets: [
        .target(name: "CMartletSQLite"),
        .target(name: "CMartletSystem"),
        // Loads libcurl at run time: neither a build nor an agent that pushes nothing needs it.
        .target(name: "CMartletCurl"),
        // OpenSSL, for one hash: swift-crypto would cost every program with models a build of BoringSSL.
        .systemLibrary(
            name: "CLibCrypto",
            pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"])]
        ),
        .target(
            name: "CMartletSimulator",
            dependencies: [.product(name: "GRDBSQLite", package: "GRDB.swift")]
        ),
        .target(
            name: "MartletCore",
            dependencies: ["CLibCrypto"],
            swiftSettings: strict
        ),
        .target(
            name: "MartletMerge",
            dependencies: ["MartletCore", .product(name: "DequeModule", package: "swift-collections")],
            swiftSettings: strict
        ),
        .target(name: "MartletBus", dependencies: ["CMartletSystem", "MartletCore"], swiftSettings: strict),
        .target(
            name: "MartletWire",
            dependencies: [
                "MartletBus",
                "MartletCore",
                "MartletMerge",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "MartletStore",
            dependencies: [
                "CMartletSQLite",
                "CMartletSystem",
                "MartletCore",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "MartletReplica",
            dependencies: [
                "MartletBus",
                "MartletCore",
                "MartletMerge",
                "MartletStore",
                "MartletWire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "MartletEngine",
            dependencies: [
                "MartletBus",
                "MartletCore",
                "MartletMerge",
                "MartletReplica",
                "MartletStore",
                "MartletWire",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "MartletBootstrap",
            dependencies: [
                "MartletBus",
                "MartletCore",
                "MartletEngine",
                "MartletMerge",
                "MartletReplica",
                "MartletStore",
                "MartletWire",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "MartletAntiEntropy",
            dependencies: [
                "MartletBus",
                "MartletCore",
                "MartletEngine",
                "MartletMerge",
                "MartletReplica",
                "MartletStore",
                "MartletWire",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "MartletExport",
            dependencies: [
                "MartletBus",
                "MartletCore",
                "MartletEngine",
                "MartletReplica",
                "MartletStore",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "MartletIngest",
            dependencies: [
                "MartletBus",
                "MartletCore",
                "MartletEngine",
                "MartletMerge",
                "MartletReplica",
                "MartletStore",
                "MartletWire",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            swiftSettings: strict
        ),
        // The engine with everything that plugs into it, under one name.
        .target(
            name: "MartletSync",
            dependencies: [
                "MartletAntiEntropy", "MartletBootstrap", "MartletBus", "MartletCore", "MartletEngine", "MartletMerge",
                "MartletReplica", "MartletWire",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "MartletSimulator",
            dependencies: [
                "CMartletSimulator",
                "MartletStore",
                "MartletSync",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .macro(
            name: "MartletDataMacros",
            dependencies: [
                .product(name: "SwiftCompilerPlugin", package: "swift-syntax"),
                .product(name: "SwiftDiagnostics", package: "swift-syntax"),
                .product(name: "SwiftSyntax", package: "swift-syntax"),
                .product(name: "SwiftSyntaxBuilder", package: "swift-syntax"),
                .product(name: "SwiftSyntaxMacros", package: "swift-syntax"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "MartletData",
            dependencies: [
                "MartletDataMacros", "MartletStore",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        .target(name: "SwiftData", dependencies: ["MartletData"], swiftSettings: strict),
        .systemLibrary(
            name: "CRdKafka",
            pkgConfig: "rdkafka",
            providers: [.apt(["librdkafka-dev"]), .brew(["librdkafka"])]
        ),
        .target(
            name: "MartletKafka",
            dependencies: [
                "CRdKafka",
                "MartletBus",
                "MartletCore",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "MartletAgent",
            dependencies: [
                "CMartletSystem",
                "MartletExport",
                "MartletIngest",
                "MartletStore",
                "MartletSync",
                "MartletKafka",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Yams", package: "Yams"),
            ],
            swiftSettings: strict
        ),
        // The only target with an HTTP library: programs that embed the agent don't carry it.
        .target(
            name: "MartletHTTP",
            dependencies: [
                "MartletAgent",
                "MartletExport",
                "MartletIngest",
                "MartletKafka",
                "MartletStore",
                "MartletSync",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "MartletTelemetry",
            dependencies: [
                "CMartletCurl",
                "MartletAgent",
                "MartletHTTP",
                "MartletKafka",
                "MartletSync",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "martlet",
            dependencies: [
                "CMartletSystem",
                "MartletAgent",
                "MartletExport",
                "MartletHTTP",
                "MartletIngest",
                "MartletKafka",
                "MartletStore",
                "MartletSync",
                "MartletTelemetry",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            swiftSettings: strict
        ),
        // The simulator is no part of the agent's binary.
        .executableTarget(
            name: "martlet-simulate",
            dependencies: [
                "MartletCore", "MartletSimulator", .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "SampleTrips",
            dependencies: ["SampleTripsApp", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            path: "Examples/SampleTrips/Program",
            swiftSettings: strict
        ),
        .target(
            name: "SampleTripsApp",
            dependencies: [
                "MartletAgent", "SwiftData",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            path: "Examples/SampleTrips/Sources",
            swiftSettings: strict
        ),
        .target(
            name: "MartletTestSupport",
            dependencies: [
                "CMartletSimulator", "MartletStore", "MartletSync", .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"), .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            path: "Tests/MartletTestSupport",
            swiftSettings: strict
        ),
        .testTarget(
            name: "MartletCoreTests",
            dependencies: ["MartletCore", "MartletTestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "MartletMergeTests",
            dependencies: ["MartletCore", "MartletMerge", "MartletTestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "MartletStoreTests",
            dependencies: [
                "MartletStore", "MartletTestSupport", .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "MartletDataTests",
            dependencies: [
                "MartletData", "MartletStore", "MartletTestSupport", "SwiftData",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        // Models and calls as programs have them that were written for SwiftData: in Swift 5 mode, and with the
        // warnings that they get.
        .testTarget(
            name: "PublicCodeTests",
            dependencies: ["SwiftData"],
            swiftSettings: [.swiftLanguageMode(.v5)]
        ),
        .testTarget(
            name: "MartletDataMacrosTests",
            dependencies: [
                "MartletDataMacros",
                .product(name: "SwiftDiagnostics", package: "swift-syntax"),
                .product(name: "SwiftOperators", package: "swift-syntax"),
                .product(name: "SwiftParser", package: "swift-syntax"),
                .product(name: "SwiftSyntax", package: "swift-syntax"),
                .product(name: "SwiftSyntaxBuilder", package: "swift-syntax"),
                .product(name: "SwiftSyntaxMacroExpansion", package: "swift-syntax"),
                .product(name: "SwiftSyntaxMacros", package: "swift-syntax"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "SampleTripsTests",
            dependencies: [
                "MartletAgent", "MartletKafka", "MartletStore", "MartletSync", "MartletTestSupport", "SampleTrips",
                "SampleTripsApp", "SwiftData",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "MartletSyncTests",
            dependencies: [
                "MartletStore", "MartletSync", "MartletTestSupport",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "MartletExportTests",
            dependencies: [
                "MartletExport", "MartletStore", "MartletSync", "MartletTestSupport",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "MartletIngestTests",
            dependencies: [
                "MartletBus", "MartletCore", "MartletExport", "MartletIngest", "MartletReplica", "MartletSimulator",
                "MartletStore", "MartletSync", "MartletTestSupport",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "MartletSimulatorTests",
            dependencies: [
                "MartletSimulator", "MartletStore", "MartletSync", "MartletTestSupport",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        // The targets of the fuzzer, on what it once came across. Under the fuzzer they are a package of their own.
        .testTarget(
            name: "MartletFuzzTests",
            dependencies: [
                "MartletAgent", "MartletAntiEntropy", "MartletBootstrap", "MartletBus", "MartletCore", "MartletEngine",
                "MartletReplica",
                "MartletStore", "MartletWire",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            path: "Tests/Fuzz",
            exclude: ["Corpus", "Package.swift", "Sources/Fuzz/Fuzz.swift"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "MartletKafkaTests",
            dependencies: [
                "CRdKafka", "MartletKafka", "MartletStore", "MartletSync", "MartletTestSupport",
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "MartletAgentTests",
            dependencies: [
                "CMartletSystem",
                "MartletAgent", "MartletExport", "MartletIngest", "MartletKafka", "MartletStore", "MartletSync",
                "MartletTestSupport",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "MartletHTTPTests",
            dependencies: [
                "MartletAgent", "MartletExport", "MartletHTTP", "MartletIngest", "MartletKafka", "MartletStore",
                "MartletSync", "MartletTestSupport",
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "MartletTelemetryTests",
            dependencies: [
                "MartletAgent", "MartletHTTP", "MartletKafka", "MartletStore", "MartletSync", "MartletTelemetry",
                "MartletTestSupport",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: strict
        ),
    ]
)
