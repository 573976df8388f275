import Foundation
import GRDB
import MartletData
import MartletStore
import SwiftData
import Testing

@Model
final class Folder {
    var name: String
    var parent: Folder?
    @Relationship(deleteRule: .cascade, inverse: \Folder.parent) var folders: [Folder] = []
    @Relationship(deleteRule: .deny, inverse: \Lock.folder) var locks: [Lock] = []
    @Relationship(deleteRule: .cascade) var cover: Cover?

    init(_ name: String, parent: Folder? = nil) {
        self.name = name
        self.parent = parent
    }
}

@Model
final class Lock {
    var folder: Folder?
    init(_ folder: Folder?) { self.folder = folder }
}

@Model
final class Cover {
    var title: String
    @Relationship(deleteRule: .cascade, inverse: \Folder.cover) var folder: Folder?
    init(_ title: String) { self.title = title }
}

@Model
final class Playlist {
    @Relationship(deleteRule: .deny, inverse: \Track.playlists) var tracks: [Track] = []
    init() {}
}

@Model
final class Track {
    var playlists: [Playlist] = []
    init() {}
}

/// The effect of a deletion on related models.
struct DeleteRuleTests {
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try ModelContainer(
            for: Folder.self, Lock.self, Cover.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        context = ModelContext(container)
    }

    private func names() throws -> [String] {
        try container.reader().fetch(FetchDescriptor<Folder>(sortBy: [SortDescriptor(\.name)])).map(\.name)
    }

    /// The folder with the name, in a context that has fetched nothing else.
    private func folder(_ name: String, in context: ModelContext) throws -> Folder {
        try #require(try context.fetch(FetchDescriptor<Folder>(predicate: #Predicate { $0.name == name })).first)
    }

    @Test func deletedModelsDontKeepEachOther() throws {
        weak var parent: Folder?
        weak var child: Folder?
        weak var cover: Cover?
        do {
            let folder = context.inserting(Folder("a"))
            let inner = context.inserting(Folder("b", parent: folder))
            let front = Cover("front")
            folder.cover = front
            parent = folder
            child = inner
            cover = front
            try context.save()
            context.delete(folder)
            try context.save()
            #expect(folder.isDeleted && folder.folders.isEmpty && folder.cover == nil)
        }
        #expect(parent == nil && child == nil && cover == nil)
    }

    @Test func aCascadeReachesEveryLevel() throws {
        var parent: Folder?
        for depth in 0..<300 { parent = context.inserting(Folder("\(depth)", parent: parent)) }
        context.insert(Folder("other"))
        try context.save()
        let other = ModelContext(container)
        other.delete(try folder("0", in: other))
        try other.save()
        #expect(try names() == ["other"])
    }

    @Test func aCascadeInACircleEnds() throws {
        let (a, b) = (context.inserting(Folder("a")), context.inserting(Folder("b")))
        a.parent = b
        b.parent = a
        try context.save()
        context.delete(a)
        try context.save()
        #expect(try names() == [])
        #expect(b.isDeleted)
    }

    @Test func aCascadeOnBothEndsDeletesBoth() throws {
        let folder = context.inserting(Folder("a"))
        folder.cover = Cover("c")
        try context.save()
        let other = ModelContext(container)
        other.delete(try #require(try other.all(Cover.self).first))
        try other.save()
        #expect(try names() == [])
        #expect(try other.fetchCount(FetchDescriptor<Cover>()) == 0)
    }

    @Test func aCascadeDeletesUnsavedChildren() throws {
        let a = context.inserting(Folder("a"))
        try context.save()
        let child = Folder("child", parent: a)
        context.insert(child)
        context.delete(a)
        try context.save()
        #expect(try names() == [])
        #expect(child.isDeleted)
    }

    @Test func aCascadeKeepsAChildThatWasMovedAway() throws {
        let (a, b) = (context.inserting(Folder("a")), context.inserting(Folder("b")))
        let child = context.inserting(Folder("child", parent: a))
        try context.save()
        child.parent = b
        context.delete(a)
        try context.save()
        #expect(try names() == ["b", "child"])
        #expect(child.parent === b)
    }

    @Test func aCascadeDeletesAChildThatWasMovedIn() throws {
        let (a, b) = (context.inserting(Folder("a")), context.inserting(Folder("b")))
        let child = context.inserting(Folder("child", parent: a))
        try context.save()
        child.parent = b
        context.delete(b)
        try context.save()
        #expect(try names() == ["a"])
    }

    @Test func aParentOutlivesItsChild() throws {
        let a = context.inserting(Folder("a"))
        let child = context.inserting(Folder("child", parent: a))
        try context.save()
        context.delete(child)
        try context.save()
        #expect(a.folders.isEmpty)
        #expect(try names() == ["a"])
    }

    @Test func denyAppliesToUnsavedModels() throws {
        let a = context.inserting(Folder("a"))
        try context.save()
        let lock = Lock(a)
        context.insert(lock)
        context.delete(a)
        #expect(throws: SwiftDataError.deleteDenied) { try context.save() }
        #expect(try names() == ["a"])
        context.delete(lock)
        try context.save()
        #expect(try names() == [])
    }

    @Test func deleteRulesReachWhatOthersHaveAddedMeanwhile() throws {
        let a = context.inserting(Folder("a"))
        try context.save()
        #expect(a.folders.isEmpty && a.locks.isEmpty)
        let other = ModelContext(container)
        let theirs = try folder("a", in: other)
        let lock = other.inserting(Lock(theirs))
        other.insert(Folder("child", parent: theirs))
        try other.save()
        context.delete(a)
        #expect(throws: SwiftDataError.deleteDenied) { try context.save() }
        other.delete(lock)
        try other.save()
        try context.save()
        #expect(try names() == [])
    }

    @Test func aCascadeKeepsAChildThatSomebodyElseHasMovedAway() throws {
        let (a, b) = (context.inserting(Folder("a")), context.inserting(Folder("b")))
        let child = context.inserting(Folder("child", parent: a))
        try context.save()
        #expect(a.folders == [child])
        let other = ModelContext(container)
        try folder("child", in: other).parent = try folder("b", in: other)
        try other.save()
        context.delete(a)
        try context.save()
        #expect(try names() == ["b", "child"])
        #expect(!child.isDeleted && !b.isDeleted)
    }

    @Test func aCascadeKeepsAChangedChildThatSomebodyElseHasMovedAway() throws {
        let (a, b) = (context.inserting(Folder("a")), context.inserting(Folder("b")))
        let child = context.inserting(Folder("child", parent: a))
        try context.save()
        let other = ModelContext(container)
        try folder("child", in: other).parent = try folder("b", in: other)
        try other.save()
        child.name = "changed"
        context.delete(a)
        try context.save()
        #expect(try names() == ["b", "changed"])
        #expect(!child.isDeleted && !b.isDeleted)
    }

    @Test func denyCountsManyToManyLinksOfEveryContext() throws {
        let container = try ModelContainer(
            for: Playlist.self, Track.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let (context, other) = (ModelContext(container), ModelContext(container))
        let playlist = context.inserting(Playlist())
        let tracks = (1...3).map { _ in context.inserting(Track()) }
        playlist.tracks = [tracks[0]]
        try context.save()
        let theirs = try #require(try other.all(Playlist.self).first)
        theirs.tracks.append(try #require(try other.all(Track.self).last))
        try other.save()
        playlist.tracks = []
        context.delete(playlist)
        // The other context's link.
        #expect(throws: SwiftDataError.deleteDenied) { try context.save() }
        theirs.tracks.removeLast()
        try other.save()
        playlist.tracks = [tracks[1]]
        // The link that isn't saved yet.
        #expect(throws: SwiftDataError.deleteDenied) { try context.save() }
        playlist.tracks = []
        try context.save()
        #expect(playlist.isDeleted)
        #expect(try container.reader().all(Track.self).allSatisfy { $0.playlists.isEmpty })
    }

    @Test func aDeniedDeletionSucceedsOnceTheReasonIsGone() throws {
        let (a, b) = (context.inserting(Folder("a")), context.inserting(Folder("b")))
        let lock = context.inserting(Lock(a))
        try context.save()
        context.delete(a)
        #expect(throws: SwiftDataError.deleteDenied) { try context.save() }
        lock.folder = b
        try context.save()
        #expect(try names() == ["b"])
        #expect(lock.folder === b)
    }

    @Test func aDenialBelowStopsTheWholeCascade() throws {
        let a = context.inserting(Folder("a"))
        let child = context.inserting(Folder("child", parent: a))
        context.insert(Lock(child))
        try context.save()
        context.delete(a)
        #expect(throws: SwiftDataError.deleteDenied) { try context.save() }
        #expect(try names() == ["a", "child"])
        context.rollback()
        #expect(!a.isDeleted)
        #expect(!child.isDeleted)
        #expect(a.folders == [child])
    }

    @Test func aDenialNamesTheModelAndTheRelationship() throws {
        let a = context.inserting(Folder("a"))
        context.insert(Lock(a))
        try context.save()
        context.delete(a)
        do {
            try context.save()
            Issue.record("It was deleted.")
        } catch let error as SwiftDataError {
            #expect(error.message.contains("Folder"))
            #expect(error.message.contains("locks"))
        }
    }

    @Test func deletingBothEndsSucceeds() throws {
        let a = context.inserting(Folder("a"))
        let lock = context.inserting(Lock(a))
        try context.save()
        context.delete(lock)
        context.delete(a)
        try context.save()
        #expect(try names() == [])
        #expect(try context.fetchCount(FetchDescriptor<Lock>()) == 0)
    }

    @Test func deletingTwiceDeletesOnce() throws {
        let a = context.inserting(Folder("a"))
        try context.save()
        context.delete(a)
        context.delete(a)
        #expect(context.deletedModelsArray.count == 1)
        try context.save()
        context.delete(a)
        #expect(!context.hasChanges)
        try context.save()
    }

    @Test func aDeletionWithAPredicateFollowsTheRules() throws {
        let a = context.inserting(Folder("a"))
        context.insert(Folder("child", parent: a))
        context.insert(Folder("b"))
        try context.save()
        try context.delete(model: Folder.self, where: #Predicate { $0.name == "a" })
        try context.save()
        #expect(try names() == ["b"])
    }

    @Test func deletingEitherEndDeletesManyToManyLinks() throws {
        let container = try sampleContainer()
        let context = ModelContext(container)
        let sample = context.inserting(Sample(1))
        let tags = ["x", "y"].map { Tag($0) }
        sample.tags = tags
        try context.save()
        context.delete(tags[0])
        try context.save()
        #expect(sample.tags == [tags[1]])
        context.delete(sample)
        try context.save()
        #expect(tags[1].samples.isEmpty)
        let left = try container.store.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM Sample_tags") }
        #expect(left == 0)
    }

    @Test func insertingADeletedModelRestoresIt() throws {
        let a = context.inserting(Folder("a"))
        try context.save()
        a.name = "changed"
        context.delete(a)
        context.insert(a)
        #expect(!a.isDeleted)
        #expect(context.deletedModelsArray.isEmpty)
        #expect(context.changedModelsArray.count == 1)
        try context.save()
        #expect(try names() == ["changed"])
    }

    @Test(arguments: [false, true])
    func insertingADeletedModelRestoresWhatCascadesDeleted(appliesRules: Bool) throws {
        let a = context.inserting(Folder("a"))
        let child = context.inserting(Folder("child", parent: a))
        let grandchild = context.inserting(Folder("grandchild", parent: child))
        a.cover = Cover("c")
        try context.save()
        let new = context.inserting(Folder("new", parent: child))
        context.delete(a)
        if appliesRules {
            context.processPendingChanges()
            #expect(child.isDeleted && grandchild.isDeleted && new.isDeleted)
        }
        context.insert(a)
        #expect([a, child, grandchild, new].allSatisfy { !$0.isDeleted })
        #expect(a.folders == [child])
        try context.save()
        #expect(try names() == ["a", "child", "grandchild", "new"])
        #expect(try container.reader().all(Cover.self).first?.folder?.name == "a")
        #expect(new.parent === child)
    }

    @Test(arguments: [false, true])
    func insertingADeletedModelRestoresReferencesToIt(appliesRules: Bool) throws {
        let container = try sampleContainer()
        let context = ModelContext(container)
        let (owner, other) = (context.inserting(Owner("a")), context.inserting(Owner("b")))
        let samples = (1...2).map { context.inserting(Sample($0, owner: owner)) }
        try context.save()
        context.delete(owner)
        if appliesRules {
            context.processPendingChanges()
            #expect(samples[0].owner == nil)
        }
        samples[1].owner = other
        context.insert(owner)
        #expect(samples.map { $0.owner?.name } == ["a", "b"])
        #expect(owner.samples == [samples[0]])
        try context.save()
        let found = try container.reader().fetch(FetchDescriptor<Sample>(sortBy: [SortDescriptor(\.number)]))
        #expect(found.map { $0.owner?.name } == ["a", "b"])
    }

    @Test func aRelationshipToADeletedModelDoesNotRestoreIt() throws {
        let container = try sampleContainer()
        let context = ModelContext(container)
        let owner = context.inserting(Owner("a"))
        let samples = (1...2).map { context.inserting(Sample($0)) }
        try context.save()
        context.delete(owner)
        samples[0].owner = owner
        let new = context.inserting(Sample(3, owner: owner))
        owner.samples.append(samples[1])
        #expect(owner.isDeleted)
        #expect(context.deletedModelsArray.count == 1)
        try context.save()
        #expect((samples + [new]).allSatisfy { $0.owner == nil })
        let reader = container.reader()
        #expect(try reader.all(Owner.self).isEmpty)
        #expect(try reader.all(Sample.self).count == 3)
        #expect(try reader.all(Sample.self).allSatisfy { $0.owner == nil })
    }

    /// Nothing else has it.
    @Test func aRelationshipToADeletedNewModelInsertsItAgain() throws {
        let container = try sampleContainer()
        let context = ModelContext(container)
        let owner = context.inserting(Owner("a"))
        context.delete(owner)
        let sample = context.inserting(Sample(1, owner: owner))
        try context.save()
        #expect(sample.owner === owner && !owner.isDeleted)
        #expect(try container.reader().all(Sample.self).first?.owner?.name == "a")
    }

    /// It would be lost silently otherwise.
    @Test func insertingAModelWhoseDeletionIsSavedIsRefused() throws {
        let a = context.inserting(Folder("a"))
        try context.save()
        context.delete(a)
        try context.save()
        context.insert(a)
        #expect(throws: SwiftDataError.modelNotFound) { try context.save() }
        context.rollback()
        context.insert(Folder("b"))
        try context.save()
        #expect(try names() == ["b"])
    }

    @Test func aDenialLeavesRelatedModelsAsTheyAre() throws {
        let a = context.inserting(Folder("a", parent: context.inserting(Folder("top"))))
        let child = context.inserting(Folder("child", parent: a))
        context.insert(Lock(a))
        try context.save()
        context.delete(a)
        #expect(throws: SwiftDataError.deleteDenied) { try context.save() }
        #expect(!child.isDeleted)
        #expect(context.deletedModelsArray.count == 1)
        #expect(context.changedModelsArray.isEmpty)
        context.insert(a)
        try context.save()
        #expect(try names() == ["a", "child", "top"])
        #expect(child.parent === a)
    }
}
