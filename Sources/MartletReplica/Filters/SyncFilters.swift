/// The filters of a node: local changes that it does not publish, and remote changes that it does not apply.
///
/// A filter never loses anything: rows that are not taken stay pending with their clocks, and what is not published is
/// remembered as such, so that both follow when the filter changes. `docs/filters.md` says how each filter works, and
/// what a change of it does.
public struct SyncFilters: Sendable, Equatable, Codable {
    /// Tables of which nothing is published, and nothing of other nodes is applied. May name tables that this node does
    /// not have.
    public var ignoredTables: Set<String> = []
    /// Columns whose values stay on this node, by table.
    public var localColumns: [String: Set<String>] = [:]
    /// By table, a condition in SQL on its columns: a row is published once it first meets the condition.
    public var publish: [String: String] = [:]
    /// By table, a condition in SQL on its columns: remote rows are in the table while they meet the condition, and
    /// held back otherwise.
    public var subscribe: [String: String] = [:]

    public init() {}

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        ignoredTables = try values.decodeIfPresent(Set<String>.self, forKey: .ignoredTables) ?? []
        localColumns = try values.decodeIfPresent([String: Set<String>].self, forKey: .localColumns) ?? [:]
        publish = try values.decodeIfPresent([String: String].self, forKey: .publish) ?? [:]
        subscribe = try values.decodeIfPresent([String: String].self, forKey: .subscribe) ?? [:]
    }

    /// True if everything is published and taken.
    public var isEmpty: Bool { self == SyncFilters() }

    /// ``localColumns`` as `table.column`, sorted.
    public var columnNames: [String] {
        localColumns.flatMap { table, columns in columns.map { "\(table).\($0)" } }.sorted()
    }

    /// The filters in words, on one line.
    public var summary: String {
        func list(_ title: String, _ names: [String]) -> [String] {
            names.isEmpty ? [] : ["\(title) \(names.joined(separator: ", "))"]
        }
        func conditions(_ conditions: [String: String]) -> [String] {
            conditions.sorted { $0.key < $1.key }.map { "\($0.key) where \($0.value)" }
        }
        return
            (list("ignore", ignoredTables.sorted()) + list("keep local", columnNames)
            + list("publish", conditions(publish)) + list("subscribe", conditions(subscribe))).joined(separator: "; ")
    }

    /// The tables that any of the filters names.
    package var tables: Set<String> {
        ignoredTables.union(localColumns.keys).union(publish.keys).union(subscribe.keys)
    }
}
