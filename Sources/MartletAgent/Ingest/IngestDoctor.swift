public import MartletIngest
import MartletStore
import MartletSync

/// Examines what a store ingests.
public enum IngestDoctor {
    /// Checks whether the tables of the configuration can take rows of a source.
    ///
    /// - Parameter path: the store.
    /// - Throws: ``/MartletCore/StoreError`` when the file can't be opened.
    public static func examine(_ configuration: IngestConfiguration, store path: String) throws -> [Finding] {
        guard !configuration.topics.isEmpty else { return [] }
        var readOnly = StoreConfiguration()
        readOnly.isReadOnly = true
        let store = try Store(path: path, configuration: readOnly)
        defer { try? store.close() }
        let problems = try store.readSync { try IngestTables.problems(configuration, $0) } ?? []
        return problems.map { problem in
            Finding(
                check: "ingest", level: problem.isMissing ? .warning : .problem,
                message: "\(problem.topic): \(problem.error.message)", remedy: problem.error.hint)
        }
    }

    /// Lists the partitions that a record holds up. Returns no findings if nothing was ever ingested.
    static func examine(_ store: Store, word: String) throws -> [Finding] {
        let places = try store.ingestPlaces()
        guard !places.isEmpty else { return [] }
        let held = places.filter { $0.problem != nil }
        guard !held.isEmpty else {
            return [Finding(check: "ingest", level: .ok, message: "no record holds up a partition")]
        }
        return held.map { place in
            let record = "\(place.topic)/\(place.partition)/\(place.next)"
            return Finding(
                check: "ingest", level: .problem, message: "\(record) can't be merged: \(place.problem ?? "")",
                remedy: "Or leave the record out for good: martlet ingest \(word) --skip \(ShellWord.quoted(record))")
        }
    }
}
