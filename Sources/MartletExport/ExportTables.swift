import MartletCore
import MartletStore

/// The tables that are exported, by their entities.
struct ExportTables {
    let all: [ExportTable]
    private let byEntity: [Int64: ExportTable]

    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if two tables have one topic.
    init(_ entities: [Entity], _ names: TopicNames) throws {
        var byEntity: [Int64: ExportTable] = [:]
        var byTopic: [String: String] = [:]
        var all: [ExportTable] = []
        for entity in entities {
            let table = ExportTable(entity, topic: names.table(entity.name))
            if let other = byTopic.updateValue(entity.name, forKey: table.topic) {
                throw StoreError(
                    .invalidArgument, "The tables \(other) and \(entity.name) would have one topic: \(table.topic).",
                    hint: "Rename one of them, or leave it out of export.tables.")
            }
            byEntity[entity.id] = table
            all.append(table)
        }
        self.all = all
        self.byEntity = byEntity
    }

    subscript(entity: Int64) -> ExportTable? { byEntity[entity] }
}
