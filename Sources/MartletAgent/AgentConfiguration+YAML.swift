import Foundation
import Logging
import MartletExport
import MartletIngest
import MartletKafka
import MartletStore
import MartletSync
import Yams

/// The error for a configuration file that can't be used, with all of its problems.
public struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    public var problems: [String]

    public init(problems: [String]) { self.problems = problems }

    public var description: String {
        problems.count == 1 ? problems[0] : problems.map { "- \($0)" }.joined(separator: "\n")
    }
}

extension Node {
    /// The first key at any depth that is a list or a mapping.
    fileprivate var keyThatIsNoText: Node? {
        switch self {
        case .mapping(let mapping):
            mapping.lazy.compactMap { key, value in
                key.scalar == nil ? key : value.keyThatIsNoText
            }.first
        case .sequence(let sequence): sequence.lazy.compactMap(\.keyThatIsNoText).first
        case .scalar, .alias: nil
        }
    }

    /// The values that are neither lists nor mappings, as the file has them, by their dotted keys.
    fileprivate var scalars: [String: String] {
        var scalars: [String: String] = [:]
        func add(_ node: Node, _ key: String) {
            switch node {
            case .scalar(let scalar): scalars[key] = scalar.string
            case .mapping(let mapping):
                for (name, value) in mapping {
                    guard let name = name.scalar?.string else { continue }
                    add(value, key.isEmpty ? name : "\(key).\(name)")
                }
            case .sequence(let sequence):
                for (index, value) in sequence.enumerated() { add(value, "\(key)[\(index)]") }
            case .alias: break
            }
        }
        add(self, "")
        return scalars
    }
}

extension AgentConfiguration {
    /// Reads a configuration file on top of the defaults.
    ///
    /// - Parameter readFile: reads a file that the configuration names (`kafka.sasl.passwordFile`, `http.tokenFile`,
    ///   `telemetry.otlp.headersFile`).
    /// - Throws: ``ConfigurationError`` with every problem: invalid YAML, an unknown key with the nearest known one, a
    ///   value of the wrong kind.
    public init(
        yaml: String, readFile: (String) throws -> String
    ) throws(ConfigurationError) {
        self.init()
        let document: Node?
        do {
            document = try Yams.compose(yaml: yaml)
        } catch {
            throw ConfigurationError(problems: ["The file is not valid YAML: \(error)"])
        }
        guard let document else { return }
        // Yams traps on such keys.
        if let key = document.keyThatIsNoText {
            throw ConfigurationError(problems: [
                "Line \(key.mark?.line ?? 1): a key is a list or a mapping; every key must be a name."
            ])
        }
        guard let top = document.any as? [String: Any] else {
            throw ConfigurationError(problems: ["The file must have keys and values at its top level."])
        }
        var reader = KeyReader(top, scalars: document.scalars)
        readStore(&reader)
        readKafka(&reader, readFile)
        readSync(&reader)
        whenCopied = reader.choice("node.whenCopied", CopyPolicy.allCases, \.rawValue) ?? whenCopied
        readSnapshot(&reader)
        check.interval = reader.duration("check.interval") ?? check.interval
        check.tombstoneHorizon = reader.duration("check.tombstoneHorizon")
        readExport(&reader)
        readIngest(&reader)
        readFilters(&reader)
        readSecurity(&reader)
        historyAge = reader.bound("history.retention.age", else: historyAge) { $0.duration($1) }
        historySizeBytes = reader.bound("history.retention.sizeBytes", else: historySizeBytes) { reader, key in
            reader.integer(key).map { Int64($0) }
        }
        readHTTP(&reader, readFile)
        readTelemetry(&reader, readFile)
        logLevel = reader.choice("log.level", Logger.Level.allCases, \.rawValue) ?? logLevel
        logFormat = reader.choice("log.format", LogFormat.allCases, \.rawValue) ?? logFormat
        let problems = reader.finish()
        guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
    }

    private mutating func readStore(_ reader: inout KeyReader) {
        storePath = reader.text("store.path") ?? storePath
        store.synchronous =
            reader.choice("store.synchronous", StoreConfiguration.Synchronous.allCases, \.rawValue) ?? store.synchronous
        store.secureDelete = reader.bool("store.secureDelete") ?? store.secureDelete
        store.walAutocheckpointPages = reader.integer("store.walAutocheckpointPages") ?? store.walAutocheckpointPages
        store.cacheKiB = reader.integer("store.cacheKiB") ?? store.cacheKiB
        store.busyTimeout = reader.duration("store.busyTimeout") ?? store.busyTimeout
    }

    private mutating func readKafka(_ reader: inout KeyReader, _ readFile: (String) throws -> String) {
        kafka.bootstrapServers = reader.texts("kafka.bootstrapServers") ?? kafka.bootstrapServers
        kafka.topic = reader.text("kafka.topic") ?? kafka.topic
        kafka.clientID = reader.text("kafka.clientId")
        kafka.securityProtocol =
            reader.choice("kafka.securityProtocol", KafkaSecurityProtocol.allCases, \.rawValue)
            ?? kafka.securityProtocol
        kafka.tls = KafkaTLS(
            caLocation: reader.text("kafka.tls.caFile"), certificateLocation: reader.text("kafka.tls.certificateFile"),
            keyLocation: reader.text("kafka.tls.keyFile"))
        kafka.linger = reader.duration("kafka.linger") ?? kafka.linger
        kafka.compression =
            reader.choice("kafka.compression", KafkaCompression.allCases, \.rawValue) ?? kafka.compression
        kafka.producerQueueBytes = reader.integer("kafka.producerQueueBytes") ?? kafka.producerQueueBytes
        kafka.consumerQueueBytes = reader.integer("kafka.consumerQueueBytes") ?? kafka.consumerQueueBytes
        kafka.fetchWaitMax = reader.duration("kafka.fetchWaitMax") ?? kafka.fetchWaitMax
        kafka.idleFetchWaitMax = reader.duration("kafka.idleFetchWaitMax") ?? kafka.idleFetchWaitMax
        kafka.storesGroupOffsets = reader.bool("kafka.storeGroupOffsets") ?? kafka.storesGroupOffsets
        kafka.properties = reader.table("kafka.properties") ?? kafka.properties
        readCredentials(&reader, readFile)
    }

    private mutating func readCredentials(_ reader: inout KeyReader, _ readFile: (String) throws -> String) {
        let mechanism = reader.text("kafka.sasl.mechanism")
        let username = reader.text("kafka.sasl.username")
        var password = reader.text("kafka.sasl.password")
        if let file = reader.text("kafka.sasl.passwordFile") {
            if password != nil { reader.problem("kafka.sasl: both password and passwordFile are set; keep one") }
            password = reader.contents(of: file, "kafka.sasl.passwordFile", readFile) ?? password
            secretFiles["kafka.sasl.passwordFile"] = file
        }
        // The client reads this file itself, repeatedly.
        if let file = reader.text("kafka.sasl.tokenFile") {
            if password != nil { reader.problem("kafka.sasl: tokenFile replaces the password; keep one of the two") }
            kafka.credentials = KafkaCredentials(tokenFile: file, username: username ?? "")
            if let mechanism { kafka.credentials?.mechanism = mechanism }
            return
        }
        guard mechanism != nil || username != nil || password != nil else { return }
        guard let username else { return reader.problem("kafka.sasl.username: is needed with a mechanism or password") }
        // The environment may have the password; the validation of the whole configuration refuses an empty one.
        let secret = Secret(password ?? "")
        kafka.credentials =
            mechanism.map { KafkaCredentials(mechanism: $0, username: username, password: secret) }
            ?? KafkaCredentials(username: username, password: secret)
    }

    /// A file without filters leaves the store's filters as they are: rows that they keep on this node are published
    /// only on demand.
    private mutating func readFilters(_ reader: inout KeyReader) {
        var filters = SyncFilters()
        filters.ignoredTables = Set(reader.texts("filters.ignore") ?? [])
        for name in reader.texts("filters.localColumns") ?? [] {
            let parts = name.split(separator: ".", maxSplits: 1).map(String.init)
            guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else {
                reader.problem("filters.localColumns: \(name) must be a table and a column, such as note.draft")
                continue
            }
            filters.localColumns[parts[0], default: []].insert(parts[1])
        }
        filters.publish = reader.table("filters.publish") ?? [:]
        filters.subscribe = reader.table("filters.subscribe") ?? [:]
        if reader.hasTable("filters") { sync.filters = filters }
    }

    private mutating func readExport(_ reader: inout KeyReader) {
        export.prefix = reader.text("export.prefix")
        export.tables = reader.texts("export.tables") ?? export.tables
        export.schemas = reader.bool("export.schemas") ?? export.schemas
        export.cloudEvents = reader.bool("export.cloudEvents") ?? export.cloudEvents
        export.ingested = reader.bool("export.ingested") ?? export.ingested
        export.partitions = reader.integer("export.partitions") ?? export.partitions
        export.replicationFactor = reader.integer("export.replicationFactor")
        export.leaseTimeout = reader.duration("export.leaseTimeout") ?? export.leaseTimeout
        export.batchChanges = reader.integer("export.batchChanges") ?? export.batchChanges
    }

    private mutating func readIngest(_ reader: inout KeyReader) {
        let mappings = reader.groups("ingest.topics") { reader in
            TableMapping(
                topic: reader.text("topic") ?? "", table: reader.text("table") ?? "", columns: reader.table("columns"))
        }
        ingest.topics = mappings ?? ingest.topics
    }

    private mutating func readSnapshot(_ reader: inout KeyReader) {
        snapshot.interval = reader.duration("snapshot.interval") ?? snapshot.interval
        snapshot.minTransactions = reader.integer("snapshot.minTransactions") ?? snapshot.minTransactions
        snapshot.partRows = reader.integer("snapshot.partRows") ?? snapshot.partRows
    }

    private mutating func readSync(_ reader: inout KeyReader) {
        sync.name = reader.text("node.name")
        sync.encoding = reader.choice("sync.format", WireEncoding.allCases, \.rawValue) ?? sync.encoding
        sync.maxMessageBytes = reader.integer("sync.maxMessageBytes") ?? sync.maxMessageBytes
        sync.maxClockSkew = reader.duration("sync.maxClockSkew") ?? sync.maxClockSkew
        sync.applyBatchTransactions = reader.integer("sync.applyBatchTransactions") ?? sync.applyBatchTransactions
        sync.applyBatchBytes = reader.integer("sync.applyBatchBytes") ?? sync.applyBatchBytes
        sync.traceHeaders = reader.choice("sync.traceHeaders", TraceHeaders.allCases, \.rawValue) ?? sync.traceHeaders
        store.foreignAuthor = reader.text("sync.foreignAuthor")
    }
}
