import Foundation
import SwiftData
import Testing

// Computed properties that set a stored one from an initializer, as libraries declare them next to `@Model`'s members.

@Model
class Reminder {
    private var raw: String?
    private var levels: [Int]
    /// Each property has the marker of the other kind: its type decides.
    @Relationship(.unique) var code: UUID
    @Relationship(deleteRule: .cascade) var pictures: [Data] = []
    @Relationship var note: String?
    @Attribute(originalName: "master") var keeper: Keeper?
    @Attribute(.externalStorage) var helpers: [Keeper] = []

    var due: Int? {
        @storageRestrictions(initializes: _raw, accesses: _$backingData)
        init(value) {
            _raw = _SwiftDataNoType()
            _$backingData.setValue(forKey: \.raw, to: value.map(String.init))
        }
        get { raw.flatMap { Int($0) } }
        set { raw = newValue.map(String.init) }
    }

    /// With a default value, which isn't what a fetched model has.
    var level: Int = 3 {
        @storageRestrictions(initializes: _levels, accesses: _$backingData)
        init(value) {
            _levels = .init()
            _$backingData.setValue(forKey: \.levels, to: [value])
        }
        get { levels[0] }
        set { levels = [newValue] }
    }

    init(due: Int?, code: UUID = UUID()) {
        self.due = due
        self.code = code
    }
}

@Model
final class Alarm: Reminder {
    private var tone: String

    var pitch: Int {
        @storageRestrictions(initializes: _tone, accesses: _$backingData)
        init(value) {
            _tone = _SwiftDataNoType()
            _$backingData.setValue(forKey: \.tone, to: "\(value) Hz")
        }
        get { Int(tone.split(separator: " ")[0]) ?? 0 }
        set { tone = "\(newValue) Hz" }
    }

    init(pitch: Int) {
        self.pitch = pitch
        super.init(due: 1)
    }
}

@Model
final class Keeper {
    var name: String?
    var age: Int

    init(name: String?, age: Int) {
        self.name = name
        self.age = age
    }
}

struct InitAccessorTests {
    private let context: ModelContext

    init() throws {
        context = ModelContext(
            try ModelContainer(for: Alarm.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true)))
    }

    @Test func computedPropertiesSetStoredOnesFromInitializers() throws {
        let reminder = Reminder(due: 12)
        #expect(reminder.due == 12)
        #expect(reminder.level == 3)
        reminder.level = 7
        let alarm = Alarm(pitch: 440)
        #expect(alarm.pitch == 440)
        #expect(alarm.due == 1)
        context.insert(reminder)
        context.insert(alarm)
        try context.save()
        let other = ModelContext(context.container)
        let found = try other.fetch(FetchDescriptor<Reminder>(sortBy: [SortDescriptor(\.code)]))
        #expect(Set(found.map(\.due)) == [12, 1])
        #expect(Set(found.map(\.level)) == [7, 3])
        #expect(found.allSatisfy { !$0.hasChanges })
        let stored = try #require(try other.fetch(FetchDescriptor<Alarm>()).first)
        #expect(stored.pitch == 440)
        stored.pitch = 220
        stored.due = nil
        try other.save()
        #expect(try ModelContext(context.container).fetch(FetchDescriptor<Alarm>()).map(\.pitch) == [220])
    }

    @Test func theTypeOverridesTheMarkerOfAProperty() throws {
        let schema = try #require(Schema([Alarm.self]).entitiesByName["Reminder"])
        #expect(schema.attributesByName["code"]?.isUnique == true)
        #expect(schema.attributesByName["pictures"]?.valueType == [Data].self)
        #expect(schema.attributesByName["note"]?.isOptional == true)
        #expect(schema.relationshipsByName["keeper"]?.originalName == "master")
        #expect(schema.relationshipsByName["helpers"]?.isToOneRelationship == false)
        let code = UUID()
        for note in ["a", "b"] {
            let reminder = Reminder(due: nil, code: code)
            reminder.note = note
            reminder.pictures = [Data([1])]
            reminder.keeper = Keeper(name: "Ann", age: 40)
            if note == "b" { reminder.helpers = [Keeper(name: nil, age: 20)] }
            context.insert(reminder)
            try context.save()
        }
        let found = try ModelContext(context.container).fetch(FetchDescriptor<Reminder>())
        #expect(found.map(\.note) == ["b"])
        #expect(found.first?.pictures == [Data([1])])
        #expect(found.first?.keeper?.name == "Ann")
        #expect(found.first?.helpers.map(\.age) == [20])
    }

    @Test func anIfInAPredicateMayHaveSeveralConditions() throws {
        for (name, age) in [("Ann", 40), ("Bob", 10), (nil, 50)] as [(String?, Int)] {
            let reminder = Reminder(due: nil)
            reminder.keeper = Keeper(name: name, age: age)
            context.insert(reminder)
        }
        context.insert(Reminder(due: nil))
        try context.save()
        let least = 18
        let predicates: [(Predicate<Reminder>, Int)] = [
            (
                #Predicate<Reminder> {
                    if let keeper = $0.keeper, let name = keeper.name, keeper.age > least {
                        name == "Ann"
                    } else {
                        false
                    }
                }, 1
            ),
            (
                #Predicate<Reminder> {
                    if $0.note == nil, let keeper = $0.keeper {
                        keeper.age > least
                    } else if $0.note == nil {
                        true
                    } else {
                        false
                    }
                }, 3
            ),
        ]
        let all = try context.fetch(FetchDescriptor<Reminder>())
        for (predicate, count) in predicates {
            #expect(try context.fetchCount(FetchDescriptor<Reminder>(predicate: predicate)) == count)
            #expect(try all.filter { try predicate.evaluate($0) }.count == count)
        }
    }
}
