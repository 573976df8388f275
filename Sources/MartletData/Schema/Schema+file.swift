import Foundation

// A schema as a file: JSON with its version, its entities and their declarations. Types are written with the names that
// they have in the program; classes and key paths aren't written.
extension Schema {
    private enum Key: CodingKey { case encodingVersion, version, entities }

    /// The version of the file format.
    public static let schemaEncodingVersion = Version(1, 0, 0)
    public var encodingVersion: Version { Self.schemaEncodingVersion }

    /// - Throws: the errors of the decoder; ``SwiftDataError/unknownSchema`` if a newer version of Martlet wrote it.
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

    /// - Throws: ``SwiftDataError/invalidSchema`` if the models contradict each other; the errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(encodingVersion, forKey: .encodingVersion)
        try container.encode(version, forKey: .version)
        try container.encode(try described().entities.values.sorted { $0.name < $1.name }, forKey: .entities)
    }

    /// Writes the schema to a file, replacing an existing one.
    ///
    /// - Throws: ``SwiftDataError/invalidSchema`` if the models contradict each other; the file system's error if the
    ///   file can't be written.
    public func save(to toURL: URL) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try encoder.encode(self).write(to: toURL, options: .atomic)
    }

    /// Reads a file of ``save(to:)``: the schema at that time, however the program's models have changed since. Use it
    /// to compare it with theirs; it can't open a container.
    ///
    /// - Throws: ``SwiftDataError/unknownSchema`` if the file doesn't contain a schema; the file system's error if it
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
