import Foundation
import GRDB
import MartletData
import MartletStore
import SwiftData
import Testing

@Model
final class Seat {
    #Unique<Seat>([\.row, \.place], [\.code])
    var row: Int
    var place: String?
    var code: String?
    var guest: String
    var hall: Hall?
    @Relationship(inverse: \Cushion.seat) var cushions: [Cushion] = []

    init(_ row: Int, _ place: String?, code: String? = nil, guest: String = "", hall: Hall? = nil) {
        self.row = row
        self.place = place
        self.code = code
        self.guest = guest
        self.hall = hall
    }
}

@Model
final class Hall {
    @Attribute(.unique) var name: String
    @Relationship(inverse: \Seat.hall) var seats: [Seat] = []
    init(_ name: String) { self.name = name }
}

@Model
final class Cushion {
    var seat: Seat?
    init(_ seat: Seat?) { self.seat = seat }
}

/// Values that are unique among models.
struct UniqueTests {
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try ModelContainer(
            for: Seat.self, Hall.self, Cushion.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        context = ModelContext(container)
    }

    private func guests() throws -> [String] {
        try container.reader().fetch(FetchDescriptor<Seat>(sortBy: [SortDescriptor(\.guest, comparator: .lexical)]))
            .map(\.guest)
    }

    @Test func aCompoundKeyMatchesOnlyWithAllItsValues() throws {
        context.insert(Seat(1, "a", guest: "Ada"))
        context.insert(Seat(1, "b", guest: "Ben"))
        context.insert(Seat(2, "a", guest: "Cleo"))
        try context.save()
        context.insert(Seat(1, "b", guest: "Dan"))
        try context.save()
        #expect(try guests() == ["Ada", "Cleo", "Dan"])
    }

    @Test func nilValuesAreNeverEqualKeys() throws {
        for guest in ["Ada", "Ben"] { context.insert(Seat(1, nil, guest: guest)) }
        try context.save()
        context.insert(Seat(1, nil, guest: "Cleo"))
        try context.save()
        #expect(try guests() == ["Ada", "Ben", "Cleo"])
    }

    @Test func aPartiallyFetchedModelMayGetAnotherKey() throws {
        context.insert(Seat(1, "a", code: "A1", guest: "Ada"))
        try context.save()
        let other = ModelContext(container)
        var descriptor = FetchDescriptor<Seat>()
        descriptor.propertiesToFetch = [\.row]
        let seat = try #require(try other.fetch(descriptor).first)
        seat.row = 2
        // Its old row and place are free in the same save.
        other.insert(Seat(1, "a", code: "B1", guest: "Ben"))
        try other.save()
        #expect(seat.place == "a" && seat.code == "A1" && seat.guest == "Ada")
        #expect(try guests() == ["Ada", "Ben"])
    }

    @Test(arguments: [false, true])
    func aKeyReleasedByAnUpsertIsFreeForANewModelInTheSameSave(isStored: Bool) throws {
        context.insert(Seat(1, "a", code: "A", guest: "Ada"))
        if isStored { try context.save() }
        context.insert(Seat(1, "a", code: "B", guest: "Ben"))
        context.insert(Seat(2, "b", code: "A", guest: "Cleo"))
        #expect(try context.fetchCount(FetchDescriptor<Seat>()) == 2)
        try context.save()
        #expect(try guests() == ["Ben", "Cleo"])
    }

    @Test func twoPendingModelsWithTheSameKeyBecomeOne() throws {
        let first = context.inserting(Seat(1, "a", guest: "Ada"))
        let second = context.inserting(Seat(1, "a", guest: "Ben"))
        try context.save()
        #expect(try guests() == ["Ben"])
        #expect(first.persistentModelID == second.persistentModelID)
        #expect(first.guest == "Ben")
        #expect(!context.hasChanges)
        #expect(try context.fetchCount(FetchDescriptor<Seat>()) == 1)
    }

    @Test func aFetchBeforeTheSaveFindsThePendingModelOnce() throws {
        let stored = context.inserting(Seat(1, "a", guest: "Ada"))
        try context.save()
        context.insert(Seat(1, "a", guest: "Ben"))
        #expect(try context.fetchCount(FetchDescriptor<Seat>()) == 1)
        context.rollback()
        #expect(stored.guest == "Ada")
        #expect(try context.all(Seat.self).map(\.guest) == ["Ada"])
    }

    @Test func anUpsertAdoptsTheRelationshipsOfTheNewModel() throws {
        let old = context.inserting(Seat(1, "a", guest: "Ada", hall: Hall("North")))
        try context.save()
        let new = context.inserting(Seat(1, "a", guest: "Ben", hall: Hall("South")))
        let cushion = context.inserting(Cushion(new))
        try context.save()
        #expect(old.hall?.name == "South")
        #expect(cushion.seat === old)
        #expect(old.cushions == [cushion])
        let found = try #require(try container.reader().all(Seat.self).first)
        #expect(found.hall?.name == "South")
        #expect(found.cushions.count == 1)
    }

    /// After the save, two objects are one row: observers of either are notified of changes to the other.
    @Test func observersOfBothObjectsAreNotifiedOfOneRow() throws {
        let old = context.inserting(Seat(1, "a", guest: "Ada"))
        try context.save()
        let new = context.inserting(Seat(1, "a", guest: "Ben"))
        nonisolated(unsafe) var heard: [String] = []
        func observe(_ seat: Seat, _ name: String) {
            withObservationTracking {
                _ = seat.guest
            } onChange: {
                heard.append(name)
            }
        }
        observe(old, "old")
        observe(new, "new")
        try context.save()
        // Both objects now show another value or another row, so that observers must read them again.
        #expect(heard.sorted() == ["new", "old"])
        for (changed, guest) in [(old, "Cleo"), (new, "Dan")] {
            heard = []
            observe(old, "old")
            observe(new, "new")
            changed.guest = guest
            #expect(heard.sorted() == ["new", "old"])
            #expect(old.guest == guest && new.guest == guest)
        }
    }

    @Test func anUpsertedObjectOutlivesTheOneThatTheContextHad() throws {
        let other = ModelContext(container)
        other.insert(Seat(1, "a", guest: "Ada", hall: Hall("North")))
        try other.save()
        // Nothing but its unsaved change keeps the object that the context has for the row.
        func leaveTheHall() throws {
            let old = try #require(try context.all(Seat.self).first)
            old.hall = nil
        }
        try leaveTheHall()
        let new = context.inserting(Seat(1, "a", guest: "Ben"))
        try context.save()
        #expect(try context.all(Seat.self) == [new])
        for guest in ["Cleo", "Dan"] {
            new.guest = guest
            #expect(context.changedModelsArray.count == 1)
            try context.save()
            #expect(try guests() == [guest])
        }
        #expect(try container.reader().all(Seat.self).first?.hall == nil)
    }

    @Test func anUpsertKeepsReferencesToTheStoredModel() throws {
        let old = context.inserting(Seat(1, "a", guest: "Ada"))
        context.insert(Cushion(old))
        try context.save()
        context.insert(Seat(1, "a", guest: "Ben"))
        try context.save()
        #expect(try container.reader().all(Seat.self).first?.cushions.count == 1)
    }

    @Test func referencesLeadToTheUpsertedModel() throws {
        let hall = context.inserting(Hall("North"))
        try context.save()
        context.insert(Seat(1, "a", hall: Hall("North")))
        try context.save()
        #expect(hall.seats.count == 1)
        #expect(hall.seats.first?.hall === hall)
        #expect(try container.reader().fetchCount(FetchDescriptor<Hall>()) == 1)
    }

    @Test func anUpsertUpdatesARowThatTheContextNeverRead() throws {
        let other = ModelContext(container)
        other.insert(Hall("North"))
        try other.save()
        let mine = context.inserting(Hall("North"))
        try context.save()
        #expect(try context.all(Hall.self) == [mine])
        #expect(try container.reader().fetchCount(FetchDescriptor<Hall>()) == 1)
    }

    @Test func anUpsertHasTheRelationshipsOfItsRow() throws {
        let other = ModelContext(container)
        let hall = other.inserting(Hall("North"))
        for place in ["a", "b"] { other.insert(Seat(1, place, hall: hall)) }
        try other.save()
        let mine = Hall("North")
        mine.seats = [Seat(1, "c")]
        context.insert(mine)
        #expect(mine.seats.count == 1)
        try context.save()
        #expect(mine.seats.map(\.place) == ["a", "b", "c"])
        #expect(mine.seats.allSatisfy { $0.hall === mine })
    }

    @Test func deleteRulesApplyToTheRelationshipsOfAnUpsertedRow() throws {
        let container = try companyContainer()
        let (other, context) = (ModelContext(container), ModelContext(container))
        let company = other.inserting(Company(code: "a"))
        company.employees = [Employee(name: "Ada")]
        company.offices = [Office(city: "Rome")]
        try other.save()
        let mine = context.inserting(Company(code: "a"))
        try context.save()
        context.delete(mine)
        #expect(throws: SwiftDataError.deleteDenied) { try context.save() }
        company.offices = []
        try other.save()
        try context.save()
        #expect(try container.reader().fetchCount(FetchDescriptor<Employee>()) == 0)
    }

    @Test func aModelWhoseTwoKeysMatchTwoRowsIsRefused() throws {
        context.insert(Seat(1, "a", code: "x", guest: "Ada"))
        context.insert(Seat(2, "b", code: "y", guest: "Ben"))
        try context.save()
        let both = context.inserting(Seat(1, "a", code: "y", guest: "Cleo"))
        #expect(throws: StoreError.self) { try context.save() }
        #expect(context.insertedModelsArray.count == 1)
        both.code = "z"
        try context.save()
        #expect(try guests() == ["Ben", "Cleo"])
    }

    @Test func aCollidingUpdateIsRefusedAndCanBeCorrected() throws {
        context.insert(Seat(1, "a", guest: "Ada"))
        let ben = context.inserting(Seat(2, "a", guest: "Ben"))
        try context.save()
        ben.row = 1
        #expect(throws: StoreError.self) { try context.save() }
        #expect(ben.row == 1)
        #expect(context.changedModelsArray.count == 1)
        ben.row = 3
        try context.save()
        #expect(try guests() == ["Ada", "Ben"])
    }

    @Test func aKeyReleasedByAnUpdateIsFreeForANewModelInTheSameSave() throws {
        let ada = context.inserting(Hall("North"))
        try context.save()
        ada.name = "South"
        let new = context.inserting(Hall("North"))
        try context.save()
        #expect(new.persistentModelID != ada.persistentModelID)
        let found = try container.reader().fetch(FetchDescriptor<Hall>(sortBy: [SortDescriptor(\.name)]))
        #expect(found.map(\.name) == ["North", "South"])
        #expect(found.map(\.persistentModelID) == [new.persistentModelID, ada.persistentModelID])
    }

    @Test func aKeyReleasedByADeletionIsFreeInTheSameSave() throws {
        let old = context.inserting(Seat(1, "a", guest: "Ada"))
        context.insert(Cushion(old))
        try context.save()
        context.delete(old)
        let new = context.inserting(Seat(1, "a", guest: "Ben"))
        try context.save()
        #expect(new.persistentModelID != old.persistentModelID)
        #expect(try guests() == ["Ben"])
        // References to the deleted model don't move to the new one.
        #expect(try container.reader().all(Cushion.self).first?.seat == nil)
    }

    @Test func aKeyReleasedByADeletionIsFreeLater() throws {
        for guest in ["Ada", "Ben", "Cleo"] {
            let seat = context.inserting(Seat(1, "a", guest: guest))
            try context.save()
            #expect(try guests() == [guest])
            context.delete(seat)
            try context.save()
        }
        #expect(try guests() == [])
    }

    @Test func aKeyReleasedByADeletionIsFreeForAnUpdate() throws {
        let ada = context.inserting(Seat(1, "a", guest: "Ada"))
        let ben = context.inserting(Seat(2, "a", guest: "Ben"))
        try context.save()
        context.delete(ada)
        ben.row = 1
        try context.save()
        #expect(try guests() == ["Ben"])
        #expect(ben.row == 1)
    }

    @Test func keysCanBeSwappedInOneSave() throws {
        let halls = ["North", "South", "West"].map { context.inserting(Hall($0)) }
        try context.save()
        halls[0].name = "South"
        halls[1].name = "North"
        // A fetch writes them, too, and rolls them back.
        #expect(try context.fetch(FetchDescriptor<Hall>(predicate: #Predicate { $0.name == "South" })) == [halls[0]])
        try context.save()
        #expect(try container.reader().all(Hall.self).map(\.name) == ["South", "North", "West"])
        for (hall, name) in zip(halls, ["North", "West", "South"]) { hall.name = name }
        try context.save()
        #expect(try container.reader().all(Hall.self).map(\.name) == ["North", "West", "South"])
        // The history has each update once.
        let changes = try #require(try context.history().last?.changes)
        let updates = changes.filter { change in
            if case .update = change { true } else { false }
        }
        #expect(changes.count == 3)
        #expect(updates.count == 3)
    }

    @Test func keysOfTwoAttributesCanBeSwappedInOneSave() throws {
        let ada = context.inserting(Seat(1, "a", code: "x", guest: "Ada"))
        let ben = context.inserting(Seat(2, "b", code: "y", guest: "Ben"))
        try context.save()
        (ada.row, ada.place, ada.code) = (2, "b", "y")
        (ben.row, ben.place, ben.code) = (1, "a", "x")
        try context.save()
        let found = try container.reader().fetch(FetchDescriptor<Seat>(sortBy: [SortDescriptor(\.row)]))
        #expect(found.map(\.guest) == ["Ben", "Ada"])
        #expect(found.map(\.code) == ["x", "y"])
        #expect(try context.history().last?.changes.count == 2)
    }

    /// One model takes a value from each of two others, one of which takes a value from the other: there is no circle,
    /// and the indexes stay.
    @Test(arguments: [true, false]) func keysPassedOnFromTwoSidesFormNoCircle(codeFirst: Bool) throws {
        let seats = [(1, "x"), (2, "y"), (3, "z")].map { context.inserting(Seat($0, "a", code: $1)) }
        try context.save()
        func schemaVersion() throws -> Int? {
            try container.store.database.read { try Int.fetchOne($0, sql: "PRAGMA schema_version") }
        }
        let before = try schemaVersion()
        if codeFirst {
            (seats[0].code, seats[0].row) = ("y", 3)
            (seats[1].code, seats[2].code, seats[2].row) = ("z", "w", 4)
        } else {
            (seats[0].row, seats[0].code) = (2, "z")
            (seats[1].row, seats[2].row, seats[2].code) = (3, 4, "w")
        }
        try context.save()
        #expect(try schemaVersion() == before)
        let expected = codeFirst ? ["3y", "2z", "4w"] : ["2z", "3y", "4w"]
        #expect(try container.reader().all(Seat.self).map { "\($0.row)\($0.code ?? "")" } == expected)
    }

    @Test func keysStayUniqueAfterASwap() throws {
        let halls = ["North", "South", "West"].map { context.inserting(Hall($0)) }
        try context.save()
        func indexes() throws -> [String] {
            try container.store.database.read {
                try String.fetchAll(
                    $0, sql: "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'Hall'")
            }
        }
        #expect(try indexes() == ["Hall_name_unique"])
        // Two models swap their values, and the third takes a value that another row has.
        let other = ModelContext(container)
        let west = try #require(try other.all(Hall.self).last)
        west.name = "Up"
        try other.save()
        other.insert(Hall("Down"))
        try other.save()
        halls[0].name = "South"
        halls[1].name = "North"
        halls[2].name = "Down"
        #expect(throws: StoreError.self) { try context.save() }
        #expect(try indexes() == ["Hall_name_unique"])
        #expect(try container.reader().all(Hall.self).map(\.name) == ["North", "South", "Up", "Down"])
        halls[2].name = "East"
        try context.save()
        #expect(try indexes() == ["Hall_name_unique"])
        #expect(try container.reader().all(Hall.self).map(\.name) == ["South", "North", "East", "Down"])
        halls[0].name = "Down"
        #expect(throws: StoreError.self) { try context.save() }
    }

    /// Swapping the values that identify models on every node would confuse the other nodes.
    @Test func swappingIdentifyingValuesIsRefused() throws {
        let context = ModelContext(try companyContainer())
        let (a, b) = (context.inserting(Company(code: "a")), context.inserting(Company(code: "b")))
        try context.save()
        a.code = "b"
        b.code = "a"
        let error = #expect(throws: SwiftDataError.self) { try context.save() }
        #expect(error == .modelValidationFailure)
        #expect(error?.message.contains("two saves") == true)
        a.code = "between"
        try context.save()
        a.code = "b"
        try context.save()
        #expect(try context.all(Company.self).map(\.code) == ["b", "a"])
    }

    @Test func aNewModelWithTheKeyOfAnUpdateBecomesTheUpdatedModel() throws {
        let hall = context.inserting(Hall("North"))
        try context.save()
        hall.name = "South"
        let new = context.inserting(Hall("South"))
        try context.save()
        #expect(new.persistentModelID == hall.persistentModelID)
        #expect(try container.reader().all(Hall.self).map(\.name) == ["South"])
    }

    @Test func keysMayShiftAlongAChain() throws {
        let halls = (0..<5).map { context.inserting(Hall("\($0)")) }
        try context.save()
        for (number, hall) in halls.enumerated() { hall.name = "\(number + 1)" }
        try context.save()
        #expect(try container.reader().all(Hall.self).map(\.name) == ["1", "2", "3", "4", "5"])
    }

    @Test func theHistoryReportsAnUpsertAsAnUpdate() throws {
        context.insert(Hall("North"))
        try context.save()
        context.insert(Hall("North"))
        try context.save()
        let history = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        let kinds = history.flatMap(\.changes).map { change in
            switch change {
            case .insert: "insert"
            case .update: "update"
            case .delete: "delete"
            }
        }
        #expect(!kinds.dropFirst().contains { $0 != "update" })
        #expect(kinds.first == "insert")
    }
}
