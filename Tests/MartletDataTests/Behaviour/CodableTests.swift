import Foundation
import GRDB
import MartletData
import MartletStore
import SwiftData
import Testing

struct Address: Codable, Equatable {
    var street: String
    var geo: Point?
    var lines: [String] = []
    var tags: [String: [Int]] = [:]
}

enum Payment: Codable, Equatable {
    case cash
    case card(number: String, limit: Decimal)
}

@Model
final class Contact {
    var home: Address
    var work: Address?
    var places: [Address] = []
    var payment: Payment = Payment.cash
    var dates: [Date] = []
    var ids: Set<UUID> = []
    var scores: [String: Double] = [:]
    var maybes: [Int?] = []
    var blobs: [Data]?

    init(home: Address) { self.home = home }
}

/// A value whose type encodes it, but fails to decode it.
struct WriteOnly: Codable {
    struct Unreadable: Error {}

    var text: String

    init(_ text: String) { self.text = text }
    init(from decoder: any Decoder) throws { throw Unreadable() }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

@Model
final class Letter {
    var body: WriteOnly
    init(_ body: WriteOnly) { self.body = body }
}

/// A value that can become one that its type doesn't accept.
struct Percentage: RawRepresentable, Codable {
    var rawValue: Int

    init?(rawValue: Int) {
        guard (0...100).contains(rawValue) else { return nil }
        self.rawValue = rawValue
    }
}

@Model
final class Dial {
    var share: Percentage
    var rest: Percentage?
    init(share: Percentage) { self.share = share }
}

/// Values that are stored as JSON.
struct CodableTests {
    let container: ModelContainer
    let context: ModelContext
    let contact = Contact(
        home: Address(street: "Weg 1", geo: Point(x: 1, y: -2), lines: ["a", "b"], tags: ["x": [1, 2]]))

    init() throws {
        container = try ModelContainer(
            for: Contact.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        context = ModelContext(container)
        context.insert(contact)
        try context.save()
    }

    private func stored() throws -> Contact { try #require(try container.reader().all(Contact.self).first) }
    private func execute(_ sql: String) throws { try container.store.write { try $0.execute(sql: sql) } }

    @Test func nestedStructsAndCollectionsSurviveASave() throws {
        contact.work = Address(street: "\"Straße\" \u{1F600}\n\u{0}")
        contact.places = [contact.home, Address(street: "")]
        contact.dates = [.distantPast, Date(timeIntervalSince1970: -0.5)]
        contact.ids = [UUID(), UUID()]
        contact.scores = ["a": .infinity, "b": 0.1]
        contact.maybes = [1, nil, 3]
        contact.blobs = [Data(), Data([0, 255])]
        try context.save()
        let found = try stored()
        #expect(found.home == contact.home)
        #expect(found.work == contact.work)
        #expect(found.places == contact.places)
        #expect(found.dates == contact.dates)
        #expect(found.ids == contact.ids)
        #expect(found.scores == contact.scores)
        #expect(found.maybes == [1, nil, 3])
        #expect(found.blobs == [Data(), Data([0, 255])])
    }

    @Test func enumsWithPayloadsSurviveASave() throws {
        contact.payment = .card(number: "1", limit: Decimal(string: "12.5") ?? 0)
        try context.save()
        #expect(try stored().payment == contact.payment)
        contact.payment = .cash
        try context.save()
        #expect(try stored().payment == .cash)
    }

    @Test func nilIsStoredAsNullAndEmptyIsNot() throws {
        #expect(try stored().work == nil)
        #expect(try stored().blobs == nil)
        contact.blobs = []
        try context.save()
        #expect(try stored().blobs == [])
        let row = try container.store.database.read {
            try Row.fetchOne($0, sql: "SELECT work, blobs, places FROM Contact")
        }
        #expect(row.map { Array($0.databaseValues) } == [.null, "[]".databaseValue, "[]".databaseValue])
    }

    @Test func changingAPartChangesTheModel() throws {
        contact.home.street = "Weg 2"
        #expect(contact.hasChanges)
        contact.places.append(contact.home)
        contact.scores["x", default: 0] += 1
        contact.home.geo?.x = 5
        try context.save()
        let found = try stored()
        #expect(found.home.street == "Weg 2")
        #expect(found.home.geo == Point(x: 5, y: -2))
        #expect(found.places.count == 1)
        #expect(found.scores == ["x": 1])
        contact.home.lines.removeAll()
        context.rollback()
        #expect(contact.home.lines == ["a", "b"])
    }

    @Test func jsonFromAnotherProgramIsRead() throws {
        try execute(
            #"UPDATE Contact SET home = '{ "tags": {}, "lines": [], "street":"Gasse 3", "new": [1] }', "#
                + #"scores = '{"a":1}'"#)
        let found = try stored()
        #expect(found.home == Address(street: "Gasse 3"))
        #expect(found.scores == ["a": 1])
    }

    @Test func aValueOfAnOlderShapeIsAnErrorThatNamesItsProperty() throws {
        try execute(#"UPDATE Contact SET home = '{"road":"Gasse 3"}'"#)
        do {
            _ = try stored()
            Issue.record("It was read.")
        } catch let error as SwiftDataError {
            #expect(error == .corruptValue)
            #expect(error.message.contains("Contact.home"))
            #expect(!error.message.contains("Gasse"))
        }
    }

    @Test(arguments: ["", "{", "null", "7", "[1]"]) func unsuitableJSONIsAnError(_ text: String) throws {
        try container.store.write { try $0.execute(sql: "UPDATE Contact SET home = ?", arguments: [text]) }
        #expect(throws: SwiftDataError.corruptValue) { try stored() }
    }

    @Test func anUnknownCaseIsAnErrorAndNotADefault() throws {
        try execute(#"UPDATE Contact SET payment = '{"cheque":{}}'"#)
        #expect(throws: SwiftDataError.corruptValue) { try stored() }
    }

    @Test func predicatesCompareWholeValues() throws {
        let (home, payment) = (contact.home, Payment.cash)
        let nobody: Address? = nil
        #expect(try context.fetchCount(FetchDescriptor<Contact>(predicate: #Predicate { $0.home == home })) == 1)
        #expect(try context.fetchCount(FetchDescriptor<Contact>(predicate: #Predicate { $0.home != home })) == 0)
        #expect(try context.fetchCount(FetchDescriptor<Contact>(predicate: #Predicate { $0.payment == payment })) == 1)
        #expect(try context.fetchCount(FetchDescriptor<Contact>(predicate: #Predicate { $0.work == nobody })) == 1)
        #expect(try context.fetchCount(FetchDescriptor<Contact>(predicate: #Predicate { $0.work != nil })) == 0)
    }

    @Test func aSetSurvivesASaveInAnyOrder() throws {
        let ids: Set<UUID> = Set((0..<20).map { _ in UUID() })
        contact.ids = ids
        try context.save()
        #expect(try stored().ids == ids)
    }

    @Test func predicatesCompareSetsInAnyOrder() throws {
        let ids: Set<UUID> = Set((0..<20).map { _ in UUID() })
        contact.ids = ids
        try context.save()
        // A set of another capacity has the same elements in another order.
        var same = Set<UUID>(minimumCapacity: 10_000)
        same.formUnion(ids)
        let fewer = Set(ids.dropFirst())
        #expect(try context.fetchCount(FetchDescriptor<Contact>(predicate: #Predicate { $0.ids == same })) == 1)
        #expect(try context.fetchCount(FetchDescriptor<Contact>(predicate: #Predicate { $0.ids != same })) == 0)
        #expect(try context.fetchCount(FetchDescriptor<Contact>(predicate: #Predicate { $0.ids == fewer })) == 0)
        #expect(try context.fetchCount(FetchDescriptor<Contact>(predicate: #Predicate { $0.ids != fewer })) == 1)
    }
}

/// Properties that are not stored, or stored in a text form of their own.
struct SpecialAttributeTests {
    @Test func aTransientPropertyStartsWithItsDefaultInEachObject() throws {
        let container = try companyContainer()
        let context = ModelContext(container)
        let ada = context.inserting(Employee(name: "Ada"))
        ada.note = "mine"
        #expect(ada.note == "mine")
        try context.save()
        #expect(ada.note == "mine")
        ada.note = "again"
        #expect(!context.hasChanges)
        #expect(try container.reader().all(Employee.self).first?.note == "none")
        context.rollback()
        #expect(ada.note == "again")
    }

    @Test func fetchedModelsHaveEphemeralDefaults() throws {
        let container = try ModelContainer(
            for: Draft.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let context = ModelContext(container)
        let draft = context.inserting(Draft(title: "a"))
        draft.cursor = 9
        draft.selection = "b"
        try context.save()
        let found = try #require(try container.reader().all(Draft.self).first)
        #expect(found.cursor == 3)
        #expect(found.selection == nil)
        found.cursor = 4
        found.modelContext?.rollback()
        #expect(found.cursor == 3)
    }

    @Test(arguments: ["https://example.org/ä?q=%20#f", "file:///tmp/a%20b", "mailto:a@b.c", "relative/path"])
    func urlsSurviveASave(_ text: String) throws {
        let container = try companyContainer()
        let context = ModelContext(container)
        let model = context.inserting(Everything())
        let url = try #require(URL(string: text))
        model.url = url
        try context.save()
        #expect(try container.reader().all(Everything.self).first?.url == url)
        #expect(try context.fetchCount(FetchDescriptor<Everything>(predicate: #Predicate { $0.url == url })) == 1)
    }

    @Test func aSaveRefusesAValueThatCannotBeDecoded() throws {
        let container = try ModelContainer(
            for: Letter.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let context = ModelContext(container)
        let letter = context.inserting(Letter(WriteOnly("a")))
        letter.body = WriteOnly("b")
        #expect(letter.body.text == "b")
        let error = #expect(throws: SwiftDataError.self) { try context.save() }
        #expect(error == .unencodableValue)
        #expect(error?.message.contains("Letter.body") == true)
        #expect(letter.body.text == "b")
    }

    @Test func aSaveRefusesARawValueThatItsTypeDoesNotAccept() throws {
        let container = try ModelContainer(
            for: Dial.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let context = ModelContext(container)
        let half = try #require(Percentage(rawValue: 50))
        let dial = context.inserting(Dial(share: half))
        try context.save()
        dial.share.rawValue = 150
        dial.rest = dial.share
        #expect(dial.share.rawValue == 150 && dial.rest?.rawValue == 150)
        let error = #expect(throws: SwiftDataError.self) { try context.save() }
        #expect(error == .unencodableValue)
        #expect(error?.message.contains("Dial.") == true)
        dial.share.rawValue = 100
        dial.rest = half
        try context.save()
        let found = try #require(try container.reader().all(Dial.self).first)
        #expect(found.share.rawValue == 100 && found.rest?.rawValue == 50)
    }

    @Test func predicatesFindOnlyUppercaseUUIDs() throws {
        let container = try companyContainer()
        let uuid = try #require(UUID(uuidString: "5C1A0000-0000-4000-8000-00000000ABCD"))
        for text in [uuid.uuidString, uuid.uuidString.lowercased()] {
            try container.store.write {
                try $0.execute(sql: "INSERT INTO Everything(uuid) VALUES (?)", arguments: [text])
            }
        }
        let context = ModelContext(container)
        let descriptor = FetchDescriptor<Everything>(predicate: #Predicate { $0.uuid == uuid })
        #expect(try context.fetchCount(descriptor) == 1)
        // A save writes uppercase letters if the value was set.
        for everything in try context.all(Everything.self) {
            everything.uuid = UUID()
            everything.uuid = uuid
        }
        try context.save()
        #expect(try context.fetchCount(descriptor) == 2)
    }

    @Test func uuidsFromAnotherProgramAreReadInAnyCase() throws {
        let container = try companyContainer()
        let uuid = UUID()
        try container.store.write {
            try $0.execute(sql: "INSERT INTO Everything(uuid) VALUES (?)", arguments: [uuid.uuidString.lowercased()])
        }
        #expect(try container.reader().all(Everything.self).first?.uuid == uuid)
    }

    @Test(arguments: ["0", "-0.1", "123456789012345678901234567890.12345678", "1e-20", "NaN"])
    func decimalsKeepEveryDigit(_ text: String) throws {
        let container = try companyContainer()
        let context = ModelContext(container)
        let model = context.inserting(Everything())
        let decimal = text == "NaN" ? Decimal.nan : try #require(Decimal(string: text))
        model.decimal = decimal
        if decimal.isNaN {
            #expect(throws: SwiftDataError.modelValidationFailure) { try context.save() }
            #expect(model.decimal.isNaN)
            return
        }
        try context.save()
        #expect(try container.reader().all(Everything.self).first?.decimal == decimal)
    }

    @Test(arguments: ["12abc", "1,5", "", "."]) func textThatOnlyBeginsWithANumberIsNoDecimal(_ text: String) throws {
        #expect(Decimal(storedValue: .text(text)) == nil)
        let container = try companyContainer()
        try container.store.write {
            try $0.execute(sql: "INSERT INTO Everything(decimal) VALUES (?)", arguments: [text])
        }
        #expect(throws: SwiftDataError.corruptValue) { try container.reader().all(Everything.self) }
    }

    @Test(arguments: ["+1.50", "-.5", "2.", "1E3", "1e-20"]) func eachFormOfADecimalIsRead(_ text: String) {
        #expect(Decimal(storedValue: .text(text)) == Decimal(string: text))
    }

    @Test func theTableHasDefaultsForOtherPrograms() throws {
        let container = try companyContainer()
        try container.store.write { try $0.execute(sql: "INSERT INTO Everything DEFAULT VALUES") }
        let found = try #require(try container.reader().all(Everything.self).first)
        #expect(found.text == "")
        #expect(found.data == Data())
        #expect(found.colour == .red)
        #expect(found.point == Point(x: 0, y: 0))
        #expect(found.words == [])
        #expect(found.maybe == nil)
    }
}
