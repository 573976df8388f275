import Foundation

// A schema as a file: JSON with its version, and its entities with what they declare. Types stand there under the names
// that they have in the program; classes and key paths don't.
extension Schema {
    private enum Key: CodingKey { case encodingVersion, version, entities }

    /// The version of what a schema is written as.
    public static let schemaEncodingVersion = Version(1, 0, 0)
    public var encodingVersion: Version { Self.schemaEncodingVersion }

    /// - Throws: what the decoder throws; ``SwiftDataError/unknownSchema`` where a newer version of Martlet wrote it.
    public convenience init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let encoding = try container.decode(Version.self, forKey: .encodingVersion)
        guard encoding.major <= Self.schemaEncodingVersion.major else {
            throw SwiftDataError.unknownSchema.because(
                """
                The schema was written in version \(encoding) of its encoding; this program reads \
                \(Self.schemaEncodingVersion). Update the program.
                """
            )
        }
        self.init(
            SchemaDescription(try container.decode([SchemaDescription.Entity].self, forKey: .entities)),
            try container.decode(Version.self, forKey: .version))
    }

    /// - Throws: ``SwiftDataError/invalidSchema`` where the models contradict each other; what the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(encodingVersion, forKey: .encodingVersion)
        try container.encode(version, forKey: .version)
        try container.encode(try described().entities.values.sorted { $0.name < $1.name }, forKey: .entities)
    }

    /// Writes the schema into a file, in place of one that is there.
    ///
    /// - Throws: ``SwiftDataError/invalidSchema`` where the models contradict each other; the file system's error where
    ///   the file can't be written.
    public func save(to toURL: URL) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try encoder.encode(self).write(to: toURL, options: .atomic)
    }

    /// Reads what ``save(to:)`` wrote: the schema as it was then, whatever the program's models have become since. It
    /// is there to be compared with theirs, and opens no container.
    ///
    /// - Throws: ``SwiftDataError/unknownSchema`` where the file holds no schema; the file system's error where it
    ///   can't be read.
    public static func load(from fromURL: URL) throws -> Schema {
        let data = try Data(contentsOf: fromURL)
        do {
            return try JSONDecoder().decode(Schema.self, from: data)
        } catch let error as DecodingError {
            throw SwiftDataError.unknownSchema.because(
                "\(fromURL.path) does not hold a schema: \(error). Write it with Schema.save(to:).", underlying: error)
        }
    }
}
