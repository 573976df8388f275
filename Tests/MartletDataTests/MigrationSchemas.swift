import Foundation
import SwiftData

// One model in many versions: each changes one thing of the first.

enum BoxV1: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String
        var weight: Int
        var note: String?
        var code: String
        var label: Label?
        init(_ name: String, weight: Int = 0, note: String? = nil, code: String = "c") {
            self.name = name
            self.weight = weight
            self.note = note
            self.code = code
        }
    }

    @Model final class Label {
        var text: String
        init(_ text: String) { self.text = text }
    }
}

enum BoxAdded: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 0
        var note: String?
        var code: String = ""
        var label: Label?
        var stars: Int = 3
        var remark: String?
        var opened: Date = Date(timeIntervalSince1970: 60)
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxRequiredAdded: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 0
        var note: String?
        var code: String
        var label: Label?
        var maker: String
        init(maker: String) {
            self.code = ""
            self.maker = maker
        }
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxRemoved: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        var name: String = ""
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxBack: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(3, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 0
        var note: String?
        var code: String = ""
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxRenamed: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.mass])
        @Attribute(originalName: "name") var title: String = ""
        @Attribute(originalName: "weight") var mass: Int = 0
        var note: String?
        var code: String = ""
        @Relationship(originalName: "label") var sticker: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxRenamedAndChanged: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        @Attribute(originalName: "name") var title: String?
        @Attribute(originalName: "weight") var mass: Double = 0
        @Attribute(originalName: "note") var remark: String = "none"
        var code: String = ""
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxRequired: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 0
        var note: String = "none"
        var code: String = ""
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxRequiredWithoutDefault: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 0
        var note: String
        var code: String = ""
        var label: Label?
        init(note: String) { self.note = note }
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxOptional: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String?
        var weight: Int?
        var note: String?
        var code: String = ""
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxDefault: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 7
        var note: String?
        var code: String = ""
        var label: Label?
        var packed: Date = Date.now
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxUnique: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Unique<Box>([\.name, \.note])
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 0
        var note: String?
        var code: String = ""
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxOtherIndexes: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.name], [\.note, \.code])
        var name: String = ""
        var weight: Int = 0
        var note: String?
        var code: String = ""
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxReal: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Double = 0
        var note: String?
        var code: String = ""
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxText: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: String = ""
        var note: String?
        var code: String = ""
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxNumber: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 0
        var note: String?
        var code: Int = 0
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxData: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Data = Data()
        var note: String?
        var code: String = ""
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxColour: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 0
        var note: String?
        var code: Colour = Colour.red
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxLeftOut: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 0
        var note: String?
        var code: String = ""
        init() {}
    }
}

enum BoxLid: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self, Lid.self, Sticker.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 0
        var note: String?
        var code: String = ""
        var label: Label?
        var lid: Lid?
        var stickers: [Sticker] = []
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }

    @Model final class Lid {
        @Attribute(.unique, .preserveValueOnDeletion) var colour: String
        init(_ colour: String) { self.colour = colour }
    }

    @Model final class Sticker {
        var text: String = ""
        init() {}
    }
}

enum BoxLabels: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 0
        var note: String?
        var code: String = ""
        @Relationship(originalName: "label") var labels: [Label] = []
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxManyLabels: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 0
        var note: String?
        var code: String = ""
        @Relationship(originalName: "label", inverse: \Label.boxes) var labels: [Label] = []
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        var boxes: [Box] = []
        init() {}
    }
}

enum BoxOneLabel: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(3, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        var name: String = ""
        var weight: Int = 0
        var note: String?
        var code: String = ""
        @Relationship(originalName: "labels") var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxShifted: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        @Attribute(originalName: "name") var code: String = ""
        @Attribute(originalName: "code") var mark: String = ""
        var weight: Int = 0
        var note: String?
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}

enum BoxSwapped: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Box.self, Label.self] }

    @Model final class Box {
        #Index<Box>([\.weight])
        @Attribute(originalName: "code") var name: String = ""
        var weight: Int = 0
        var note: String?
        @Attribute(originalName: "name") var code: String = ""
        var label: Label?
        init() {}
    }

    @Model final class Label {
        var text: String = ""
        init() {}
    }
}
