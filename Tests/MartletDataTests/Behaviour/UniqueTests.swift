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

/// Values that no two models have.
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

    @Test func compoundKeyIsMetByAllItsValuesOnly() throws {
        context.insert(Seat(1, "a", guest: "Ada"))
        context.insert(Seat(1, "b", guest: "Ben"))
        context.insert(Seat(2, "a", guest: "Cleo"))
        try context.save()
        context.insert(Seat(1, "b", guest: "Dan"))
        try context.save()
        #expect(try guests() == ["Ada", "Cleo", "Dan"])
    }

    @Test func nilMakesNoTwoModelsEqual() throws {
        for guest in ["Ada", "Ben"] { context.insert(Seat(1, nil, guest: guest)) }
        try context.save()
        context.insert(Seat(1, nil, guest: "Cleo"))
        try context.save()
        #expect(try guests() == ["Ada", "Ben", "Cleo"])
    }

    @Test func twoPendingModelsWithOneKeyAreOne() throws {
        let first = context.inserting(Seat(1, "a", guest: "Ada"))
        let second = context.inserting(Seat(1, "a", guest: "Ben"))
        try context.save()
        #expect(try guests() == ["Ben"])
        #expect(first.persistentModelID == second.persistentModelID)
        #expect(first.guest == "Ben")
        #expect(!context.hasChanges)
        #expect(try context.fetchCount(FetchDescriptor<Seat>()) == 1)
    }

    @Test func fetchBeforeTheSaveFindsThePendingModelOnce() throws {
        let stored = context.inserting(Seat(1, "a", guest: "Ada"))
        try context.save()
        context.insert(Seat(1, "a", guest: "Ben"))
        #expect(try context.fetchCount(FetchDescriptor<Seat>()) == 1)
        context.rollback()
        #expect(stored.guest == "Ada")
        #expect(try context.all(Seat.self).map(\.guest) == ["Ada"])
    }

    @Test func upsertTakesOverRelationships() throws {
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

    @Test func upsertKeepsWhatRefersToTheStoredModel() throws {
        let old = context.inserting(Seat(1, "a", guest: "Ada"))
        context.insert(Cushion(old))
        try context.save()
        context.insert(Seat(1, "a", guest: "Ben"))
        try context.save()
        #expect(try container.reader().all(Seat.self).first?.cushions.count == 1)
    }

    @Test func upsertOfATargetIsWhatItsOwnersReferTo() throws {
        let hall = context.inserting(Hall("North"))
        try context.save()
        context.insert(Seat(1, "a", hall: Hall("North")))
        try context.save()
        #expect(hall.seats.count == 1)
        #expect(hall.seats.first?.hall === hall)
        #expect(try container.reader().fetchCount(FetchDescriptor<Hall>()) == 1)
    }

    @Test func upsertIntoARowThatTheContextNeverSaw() throws {
        let other = ModelContext(container)
        other.insert(Hall("North"))
        try other.save()
        let mine = context.inserting(Hall("North"))
        try context.save()
        #expect(try context.all(Hall.self) == [mine])
        #expect(try container.reader().fetchCount(FetchDescriptor<Hall>()) == 1)
    }

    @Test func twoKeysThatNameTwoRowsAreRefused() throws {
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

    @Test func updateThatCollidesIsRefusedAndMayBeMended() throws {
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

    @Test func keyThatAnUpdateGivesUpIsFreeForANewModelOfTheSameSave() throws {
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

    @Test func keyThatADeletionGivesUpIsFreeInTheSameSave() throws {
        let old = context.inserting(Seat(1, "a", guest: "Ada"))
        context.insert(Cushion(old))
        try context.save()
        context.delete(old)
        let new = context.inserting(Seat(1, "a", guest: "Ben"))
        try context.save()
        #expect(new.persistentModelID != old.persistentModelID)
        #expect(try guests() == ["Ben"])
        // What referred to the deleted one doesn't refer to the new one.
        #expect(try container.reader().all(Cushion.self).first?.seat == nil)
    }

    @Test func keyThatADeletionGaveUpIsFreeLater() throws {
        for guest in ["Ada", "Ben", "Cleo"] {
            let seat = context.inserting(Seat(1, "a", guest: guest))
            try context.save()
            #expect(try guests() == [guest])
            context.delete(seat)
            try context.save()
        }
        #expect(try guests() == [])
    }

    @Test func keyThatADeletionGivesUpIsFreeForAnUpdate() throws {
        let ada = context.inserting(Seat(1, "a", guest: "Ada"))
        let ben = context.inserting(Seat(2, "a", guest: "Ben"))
        try context.save()
        context.delete(ada)
        ben.row = 1
        try context.save()
        #expect(try guests() == ["Ben"])
        #expect(ben.row == 1)
    }

    /// SQLite checks each row as it is written: an exchange takes two saves.
    @Test func exchangeOfKeysInOneSaveIsRefused() throws {
        let (a, b) = (context.inserting(Hall("North")), context.inserting(Hall("South")))
        try context.save()
        a.name = "South"
        b.name = "North"
        #expect(throws: StoreError.self) { try context.save() }
        a.name = "between"
        try context.save()
        a.name = "South"
        try context.save()
        #expect(try container.reader().all(Hall.self).map(\.name) == ["South", "North"])
    }

    @Test func newModelWithAKeyThatAnUpdateTakesIsThatModel() throws {
        let hall = context.inserting(Hall("North"))
        try context.save()
        hall.name = "South"
        let new = context.inserting(Hall("South"))
        try context.save()
        #expect(new.persistentModelID == hall.persistentModelID)
        #expect(try container.reader().all(Hall.self).map(\.name) == ["South"])
    }

    @Test func keysMoveOnInARow() throws {
        let halls = (0..<5).map { context.inserting(Hall("\($0)")) }
        try context.save()
        for (number, hall) in halls.enumerated() { hall.name = "\(number + 1)" }
        try context.save()
        #expect(try container.reader().all(Hall.self).map(\.name) == ["1", "2", "3", "4", "5"])
    }

    @Test func upsertIsToldAsAnUpdateInTheHistory() throws {
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
