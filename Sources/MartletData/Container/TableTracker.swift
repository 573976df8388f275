import GRDB
import MartletStore

/// Has the history record the tables of a schema.
struct TableTracker {
    private let alteration: Alteration
    private let layout: SchemaLayout

    init(_ alteration: Alteration, _ layout: SchemaLayout) {
        self.alteration = alteration
        self.layout = layout
    }

    /// Each by itself, as they are known in different ways. Those that are tracked already follow what is said of them now.
    func track() throws {
        for table in layout.tables {
            var request = AttachRequest()
            request.tables = [table.name]
            request.identities = [table.name: table.identity]
            request.keepsOldValues = table.keepsOldValues
            request.logsExistingRows = true
            try alteration.attach(request)
        }
        for join in layout.joins {
            var request = AttachRequest()
            request.tables = [join.name]
            request.logsExistingRows = true
            try alteration.attach(request)
        }
    }
}

extension TableLayout {
    /// A tombstone has the preserved attributes, and which model of a hierarchy it was.
    var keepsOldValues: Bool { preservesValues || hasTypeColumn }
}
