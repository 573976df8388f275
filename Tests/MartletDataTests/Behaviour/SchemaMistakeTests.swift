import Foundation
import MartletData
import SwiftData
import Testing

@Model
final class Shelf {
    #Unique<Shelf>([\.volumes])
    @Relationship(inverse: \Volume.shelf) var volumes: [Volume] = []
    init() {}
}

@Model
final class Volume {
    var shelf: Shelf?
    init() {}
}

@Model
final class Aloud {
    var name = ""
    var Name = ""
    init() {}
}

@Model
final class Pointing {
    @Relationship(inverse: \Pointed.name) var target: Pointed?
    init() {}
}

@Model
final class Pointed {
    var name = ""
    init() {}
}

@Model
final class Judge {
    @Relationship(inverse: \Court.judges) var first: Court?
    var second: Court?
    init() {}
}

@Model
final class Court {
    @Relationship(inverse: \Judge.second) var judges: [Judge] = []
    init() {}
}

enum Elsewhere {
    @Model
    final class Volume {
        var title = ""
        init() {}
    }
}

@Model
final class Hidden {
    #Index<Hidden>([\.secret])
    @Transient var secret = ""
    init() {}
}

/// Creating a container fails for contradictory models, and names each.
struct SchemaMistakeTests {
    /// The message of the error when a container of these models is created.
    private func message(_ types: any PersistentModel.Type...) throws -> String {
        do {
            _ = try ModelContainer(
                for: Schema(types), configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        } catch let error as SwiftDataError {
            #expect(error == .invalidSchema)
            return error.message
        }
        Issue.record("The container was made.")
        return ""
    }

    @Test func aUniqueConstraintOnAToManyRelationshipIsRefused() throws {
        let text = try message(Shelf.self)
        #expect(text.contains("Shelf.volumes"))
        #expect(text.contains("attribute"))
    }

    @Test func anIndexOnATransientPropertyIsRefused() throws {
        let text = try message(Hidden.self)
        #expect(text.contains("Hidden.secret"))
        #expect(text.contains("attribute"))
    }

    @Test func namesThatDifferOnlyInCaseAreRefused() throws {
        #expect(try message(Aloud.self).contains("Aloud"))
    }

    @Test func anInverseThatIsNoRelationshipIsRefused() throws {
        let text = try message(Pointing.self)
        #expect(text.contains("Pointing.target"))
        #expect(text.contains("Pointed"))
    }

    @Test func anInverseWithAnotherInverseIsRefused() throws {
        let text = try message(Judge.self)
        #expect(text.contains("Judge."))
        #expect(text.contains("Court.judges"))
    }

    @Test func twoModelsWithTheSameNameAreRefused() throws {
        #expect(try message(Shelf.self, Elsewhere.Volume.self).contains("Volume"))
    }
}
