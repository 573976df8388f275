import Foundation
import SwiftData
import Testing

/// Setting one end of a relationship sets the other.
struct InverseTests {
    let container: ModelContainer
    let context: ModelContext
    let a = Owner("a")
    let b = Owner("b")
    let sample = Sample(1)

    init() throws {
        container = try sampleContainer()
        context = ModelContext(container)
        context.insert(a)
        context.insert(b)
        context.insert(sample)
        sample.owner = a
        try context.save()
    }

    private func stored(_ name: String) throws -> Owner {
        let found = try container.reader().fetch(FetchDescriptor<Owner>(predicate: #Predicate { $0.name == name }))
        return try #require(found.first)
    }

    /// The numbers of an owner's samples, as another context fetches them.
    private func storedSamples(_ name: String) throws -> [Int] {
        let context = ModelContext(container)
        let found = try context.fetch(FetchDescriptor<Sample>(predicate: #Predicate { $0.owner?.name == name }))
        return found.map(\.number).sorted()
    }

    // MARK: One to many

    @Test func settingAnotherOwnerRemovesTheModelFromTheFirst() throws {
        #expect(a.samples == [sample])
        sample.owner = b
        #expect(a.samples.isEmpty)
        #expect(b.samples == [sample])
        try context.save()
        #expect(try storedSamples("a") == [])
        #expect(try storedSamples("b") == [1])
    }

    @Test func appendingToAnotherOwnersListRemovesTheModelFromTheFirst() throws {
        b.samples.append(sample)
        #expect(sample.owner === b)
        #expect(a.samples.isEmpty)
        try context.save()
        #expect(try storedSamples("b") == [1])
    }

    @Test func movingWorksWithoutReadingTheOtherEnds() throws {
        let context = ModelContext(container)
        let owners = try context.fetch(FetchDescriptor<Owner>(sortBy: [SortDescriptor(\.name)]))
        let sample = try #require(try context.all(Sample.self).first)
        owners[1].samples = [sample]
        #expect(sample.owner === owners[1])
        #expect(owners[0].samples.isEmpty)
        try context.save()
        #expect(try storedSamples("a") == [])
        #expect(try storedSamples("b") == [1])
    }

    @Test func settingNilRemovesTheModelFromTheOwnersList() throws {
        _ = a.samples
        sample.owner = nil
        #expect(a.samples.isEmpty)
        try context.save()
        #expect(try storedSamples("a") == [])
        #expect(a.samples.isEmpty)
    }

    @Test func emptyingAListReleasesEveryElement() throws {
        let second = context.inserting(Sample(2, owner: a))
        a.samples = []
        #expect(sample.owner == nil)
        #expect(second.owner == nil)
        try context.save()
        #expect(try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.owner == nil })) == 2)
    }

    @Test func replacingAListKeepsCommonElements() throws {
        let (second, third) = (context.inserting(Sample(2, owner: a)), context.inserting(Sample(3)))
        try context.save()
        a.samples = [second, third]
        #expect(sample.owner == nil)
        #expect(second.owner === a)
        #expect(third.owner === a)
        try context.save()
        #expect(try storedSamples("a") == [2, 3])
    }

    @Test func aListContainsAModelOnce() throws {
        a.samples.append(sample)
        #expect(a.samples == [sample])
        let second = Sample(2)
        b.samples = [second, second, sample, second]
        #expect(b.samples == [second, sample])
        try context.save()
        #expect(try storedSamples("b") == [1, 2])
        #expect(try context.fetchCount(FetchDescriptor<Sample>()) == 2)
    }

    @Test func aLongListContainsAModelOnce() throws {
        let others = (2...300).map { context.inserting(Sample($0)) }
        for other in others { other.owner = a }
        #expect(a.samples == [sample] + others)
        for other in others.prefix(100) { other.owner = b }
        for other in others { other.owner = a }
        #expect(a.samples.count == 300 && Set(a.samples).count == 300)
        #expect(b.samples.isEmpty)
        // Both ends refer to each other before they are inserted.
        let (owner, owned) = (Owner("c"), (301...600).map { Sample($0) })
        for next in owned { next.owner = owner }
        owner.samples = owned
        context.insert(owner)
        #expect(owner.samples == owned)
        try context.save()
        #expect(try storedSamples("a") == Array(1...300))
        #expect(try storedSamples("c") == Array(301...600))
    }

    @Test func twoLongListsOfAModelGrowInTurn() throws {
        let samples = (2...200).map { context.inserting(Sample($0)) }
        let reports = (2...200).map { context.inserting(Owner("\($0)")) }
        for (next, report) in zip(samples, reports) {
            next.owner = a
            report.boss = a
            a.boss = a.boss == nil ? b : nil
        }
        #expect(a.samples == [sample] + samples && a.reports == reports)
        // Each leaves and comes back.
        for (next, report) in zip(samples, reports) {
            next.owner = b
            report.boss = nil
            next.owner = a
            report.boss = a
        }
        #expect(a.samples == [sample] + samples && a.reports == reports)
        #expect(b.samples.isEmpty && b.reports == [a])
        a.samples = [sample]
        for next in samples { next.owner = a }
        #expect(a.samples == [sample] + samples)
        try context.save()
        #expect(try storedSamples("a") == Array(1...200))
    }

    @Test func aListOfAnUninsertedModelContainsEachModelOnce() throws {
        let owner = Owner("c")
        let second = Sample(2)
        owner.samples = [second, second]
        context.insert(owner)
        #expect(owner.samples == [second])
        try context.save()
        #expect(try storedSamples("c") == [2])
    }

    @Test func appendingAndSettingInsertModels() throws {
        a.samples.append(Sample(2))
        sample.tags = [Tag("x")]
        #expect(context.insertedModelsArray.count == 2)
        let new = Sample(3)
        new.owner = a
        // The owner doesn't know a model without a context.
        #expect(a.samples.count == 2)
        context.insert(new)
        #expect(a.samples.count == 3)
        try context.save()
        #expect(try storedSamples("a") == [1, 2, 3])
    }

    @Test func insertingAModelInsertsAllReachableModels() throws {
        let boss = Owner("boss")
        let owner = Owner("c", boss: boss)
        owner.samples = [Sample(5)]
        owner.samples[0].tags = [Tag("x"), Tag("y")]
        context.insert(owner)
        #expect(context.insertedModelsArray.count == 5)
        #expect(boss.reports == [owner])
        try context.save()
        #expect(try storedSamples("c") == [5])
        #expect(try stored("c").samples.first?.tags.map(\.name).sorted() == ["x", "y"])
    }

    /// An insertion by recursion would need more stack than a thread has.
    @Test func aLongChainOfModelsIsInserted() throws {
        var chain = [Owner("0")]
        for number in 1..<30_000 { chain.append(Owner("\(number)", boss: chain[number - 1])) }
        context.insert(chain[29_999])
        #expect(context.insertedModelsArray.count == 30_000)
        #expect(chain[0].reports == [chain[1]])
        try context.save()
        #expect(try context.fetchCount(FetchDescriptor<Owner>()) == 30_002)
    }

    // MARK: Rolling back

    @Test func rollbackRevertsAMoveOnBothEnds() throws {
        _ = (a.samples, b.samples)
        sample.owner = b
        context.rollback()
        #expect(sample.owner === a)
        #expect(a.samples == [sample])
        #expect(b.samples.isEmpty)
        #expect(!context.hasChanges)
    }

    @Test func rollbackRevertsAListOnBothEnds() throws {
        let new = Sample(2)
        b.samples = [sample, new]
        context.rollback()
        #expect(sample.owner === a)
        #expect(b.samples.isEmpty)
        #expect(new.modelContext == nil)
        #expect(try context.fetchCount(FetchDescriptor<Sample>()) == 1)
    }

    @Test func rollbackRevertsManyToManyLinksOnBothEnds() throws {
        let tags = ["x", "y"].map { context.inserting(Tag($0)) }
        sample.tags = [tags[0]]
        try context.save()
        sample.tags = [tags[1]]
        #expect(tags[1].samples == [sample])
        context.rollback()
        #expect(sample.tags == [tags[0]])
        #expect(tags[0].samples == [sample])
        #expect(tags[1].samples.isEmpty)
        try context.save()
        #expect(try container.reader().all(Sample.self).first?.tags.map(\.name) == ["x"])
    }

    @Test func aRolledBackInsertMayBeRepeated() throws {
        let new = Sample(2, owner: a)
        context.insert(new)
        context.rollback()
        #expect(a.samples == [sample])
        context.insert(new)
        #expect(a.samples.count == 2)
        try context.save()
        #expect(try storedSamples("a") == [1, 2])
    }

    // MARK: Many to many

    @Test func manyToManyLinksAreSavedFromEitherEnd() throws {
        let tag = context.inserting(Tag("x"))
        tag.samples = [sample]
        #expect(sample.tags == [tag])
        try context.save()
        sample.tags = []
        #expect(tag.samples.isEmpty)
        try context.save()
        #expect(try container.reader().all(Tag.self).first?.samples.isEmpty == true)
        tag.samples.append(sample)
        try context.save()
        #expect(try container.reader().all(Sample.self).first?.tags.map(\.name) == ["x"])
    }

    @Test func aLongListOfLinksIsSaved() throws {
        let (x, y) = (context.inserting(Tag("x")), context.inserting(Tag("y")))
        y.samples = [sample]
        try context.save()
        for number in 2...200 { context.inserting(Sample(number)).tags = [x, y] }
        #expect(x.samples.count == 199 && y.samples.count == 200)
        y.samples.removeAll { $0.number > 100 }
        try context.save()
        let found = try container.reader().all(Tag.self).sorted { $0.name < $1.name }
        #expect(found.map { $0.samples.map(\.number).sorted() } == [Array(2...200), Array(1...100)])
    }

    @Test func settingBothEndsSavesOneLink() throws {
        let tag = context.inserting(Tag("x"))
        tag.samples = [sample, sample]
        sample.tags = [tag, tag]
        try context.save()
        let found = try #require(try container.reader().all(Sample.self).first)
        #expect(found.tags.count == 1)
        #expect(found.tags[0].samples.count == 1)
    }

    @Test func aLinkThatIsRemovedAndSetAgainStays() throws {
        let tag = context.inserting(Tag("x"))
        sample.tags = [tag]
        try context.save()
        sample.tags = []
        sample.tags = [tag]
        try context.save()
        #expect(try container.reader().all(Tag.self).first?.samples.map(\.number) == [1])
    }

    @Test func aLinkThatIsRemovedFromADeletedModelStaysAwayIfTheModelIsInsertedAgain() throws {
        context.inserting(Tag("x")).samples = [sample]
        try context.save()
        let other = ModelContext(container)
        let tag = try #require(try other.all(Tag.self).first)
        let linked = try #require(try other.all(Sample.self).first)
        other.delete(tag)
        linked.tags = []
        other.insert(tag)
        #expect(tag.samples.isEmpty)
        try other.save()
        #expect(try container.reader().all(Tag.self).map { $0.samples.isEmpty } == [true])
    }

    @Test func linksChangedFromBothEndsAreAllSaved() throws {
        let (x, y) = (context.inserting(Tag("x")), context.inserting(Tag("y")))
        let second = context.inserting(Sample(2))
        sample.tags = [x]
        try context.save()
        sample.tags.append(y)
        x.samples.append(second)
        y.samples.removeAll { $0 === sample }
        try context.save()
        let found = try container.reader().fetch(FetchDescriptor<Sample>(sortBy: [SortDescriptor(\.number)]))
        #expect(found.map { $0.tags.map(\.name) } == [["x"], ["x"]])
    }

    // MARK: To itself

    @Test func aTreeSurvivesASave() throws {
        b.boss = a
        let c = context.inserting(Owner("c", boss: b))
        #expect(a.reports == [b])
        #expect(b.reports == [c])
        try context.save()
        let found = try stored("c")
        #expect(found.boss?.boss?.name == "a")
        #expect(try stored("a").reports.first?.reports.map(\.name) == ["c"])
    }

    @Test func aModelMayReferToItself() throws {
        a.boss = a
        #expect(a.reports == [a])
        try context.save()
        let found = try stored("a")
        #expect(found.boss === found)
        #expect(found.reports == [found])
        a.boss = nil
        #expect(a.reports.isEmpty)
        try context.save()
        #expect(try stored("a").boss == nil)
    }

    @Test func aNewModelMayReferToItself() throws {
        let c = Owner("c")
        c.boss = c
        context.insert(c)
        try context.save()
        let found = try stored("c")
        #expect(found.boss === found)
    }

    @Test func aCircleOfStoredModelsCanBeChanged() throws {
        a.boss = b
        b.boss = a
        try context.save()
        #expect(try stored("a").boss?.boss?.name == "a")
        a.reports = []
        #expect(b.boss == nil)
        try context.save()
        #expect(try stored("b").boss == nil)
        #expect(try stored("a").boss?.name == "b")
    }

    // MARK: Observation

    @Test func observersOfTheOtherEndAreNotified() throws {
        nonisolated(unsafe) var heard = 0
        withObservationTracking {
            _ = a.samples
        } onChange: {
            heard += 1
        }
        sample.owner = b
        #expect(heard == 1)
    }

    @Test func observersOfTheOtherEndAreNotifiedOfARollback() throws {
        sample.owner = b
        nonisolated(unsafe) var heard = 0
        withObservationTracking {
            _ = a.samples
        } onChange: {
            heard += 1
        }
        context.rollback()
        #expect(heard == 1)
        #expect(a.samples == [sample])
    }

    /// The save releases models that only the list keeps, with their observers.
    @Test func observersAreNotifiedWhenAContextUnloadsRelationships() throws {
        for number in 2...10_001 { context.insert(Sample(number, owner: a)) }
        nonisolated(unsafe) var heard = 0
        withObservationTracking {
            _ = a.samples
        } onChange: {
            heard += 1
        }
        try context.save()
        #expect(heard == 1)
        #expect(a.samples.map(\.number) == Array(1...10_001))
    }

    @Test func aListChangesOnceHoweverManyOfItsModelsAreDeleted() throws {
        nonisolated(unsafe) let owner = a
        nonisolated(unsafe) var heard = 0
        @Sendable func observe() {
            withObservationTracking {
                _ = owner.samples
            } onChange: {
                heard += 1
                observe()
            }
        }
        owner.samples.append(contentsOf: [Sample(2), Sample(3)])
        try context.save()
        observe()
        for sample in owner.samples { context.delete(sample) }
        context.processPendingChanges()
        #expect(owner.samples.isEmpty)
        #expect(heard == 1)
    }
}
