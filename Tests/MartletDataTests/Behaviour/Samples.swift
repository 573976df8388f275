import Foundation
import SwiftData

// Models for the behaviour table: values at their limits, and every kind of relationship to the same and other models.

@Model
final class Sample {
    var number: Int
    var big: UInt64 = 0
    var ratio: Double = 0
    var maybe: Double?
    var count: Int?
    var flag: Bool = false
    var maybeFlag: Bool?
    var text: String = ""
    var note: String?
    var date: Date = Date(timeIntervalSince1970: 0)
    var data: Data?
    var colour: Colour = Colour.red
    var otherColour: Colour?
    var owner: Owner?
    @Relationship(inverse: \Tag.samples) var tags: [Tag] = []

    init(_ number: Int, text: String = "", note: String? = nil, owner: Owner? = nil) {
        self.number = number
        self.text = text
        self.note = note
        self.owner = owner
    }
}

@Model
final class Owner {
    var name: String
    var nick: String?
    var rank: Int
    @Relationship(inverse: \Sample.owner) var samples: [Sample] = []
    var boss: Owner?
    @Relationship(inverse: \Owner.boss) var reports: [Owner] = []

    init(_ name: String, nick: String? = nil, rank: Int = 0, boss: Owner? = nil) {
        self.name = name
        self.nick = nick
        self.rank = rank
        self.boss = boss
    }
}

@Model
final class Tag {
    #Unique<Tag>([\.name])
    var name: String
    var samples: [Sample] = []

    init(_ name: String) { self.name = name }
}

func sampleContainer(_ configuration: ModelConfiguration = .init(isStoredInMemoryOnly: true)) throws -> ModelContainer {
    try ModelContainer(for: Sample.self, Owner.self, Tag.self, configurations: configuration)
}

extension ModelContext {
    func inserting<T: PersistentModel>(_ model: T) -> T {
        insert(model)
        return model
    }
}

/// A random number generator that restarts with each run, so that failures are reproducible.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed &+ 0x9E37_79B9_7F4A_7C15 }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

extension ModelContainer {
    /// A context that has fetched nothing yet. It lives as long as the process, since its models need it.
    func reader() -> ModelContext { Readers.shared.add(ModelContext(self)) }
}

/// Safe because of the lock; only the test that requested a context uses it.
private final class Readers: @unchecked Sendable {
    static let shared = Readers()
    private let lock = NSLock()
    private var contexts: [ModelContext] = []

    func add(_ context: ModelContext) -> ModelContext {
        lock.withLock { contexts.append(context) }
        return context
    }
}
