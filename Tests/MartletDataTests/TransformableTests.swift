import Foundation
import GRDB
import MartletStore
import SwiftData
import Testing

@Suite struct TransformableTests {
    /// No type that anything but its transformer can keep.
    struct Color: Equatable {
        var red: UInt8
        var green: UInt8
    }

    final class ColorTransformer: ValueTransformer {
        override class func allowsReverseTransformation() -> Bool { true }
        override func transformedValue(_ value: Any?) -> Any? {
            guard let color = value as? Color, color.red < 200 else { return nil }
            return Data([color.red, color.green])
        }
        override func reverseTransformedValue(_ value: Any?) -> Any? {
            guard let data = value as? Data, data.count == 2 else { return nil }
            return Color(red: data[0], green: data[1])
        }
    }

    final class OneWay: ValueTransformer {}

    @Model class Shape {
        var name: String
        @Attribute(.transformable(by: ColorTransformer.self)) var color: Color
        @Attribute(.transformable(by: ColorTransformer.self)) var edge: Color? = Color(red: 1, green: 1)
        @Attribute(.transformable(by: "OrphanTransformer")) var orphan: Color?
        init(name: String, color: Color) {
            self.name = name
            self.color = color
        }
    }

    @Model final class Circle: Shape {
        @Attribute(.transformable(by: ColorTransformer.self)) var fill: Color = Color(red: 9, green: 9)
        @Attribute(.transformable(by: OneWay.self)) var lost: Color?
        init(name: String) { super.init(name: name, color: Color(red: 3, green: 4)) }
    }

    final class Backwards: ValueTransformer {
        override class func allowsReverseTransformation() -> Bool { true }
        override func transformedValue(_ value: Any?) -> Any? {
            (value as? String).map { Data($0.utf8.reversed()) }
        }
        override func reverseTransformedValue(_ value: Any?) -> Any? {
            guard let data = value as? Data, !data.isEmpty else { return nil }
            return String(decoding: data.reversed(), as: UTF8.self)
        }
    }

    @Model final class Secret {
        @Attribute(.transformable(by: Backwards.self), .preserveValueOnDeletion) var word: String
        @Attribute(.transformable(by: Backwards.self), .preserveValueOnDeletion) var hint: String?
        init(word: String, hint: String?) {
            self.word = word
            self.hint = hint
        }
    }

    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try ModelContainer(
            for: Shape.self, Circle.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        context = ModelContext(container)
    }

    private func fetched() throws -> [Shape] {
        try ModelContext(container).fetch(FetchDescriptor<Shape>(sortBy: [SortDescriptor(\.name)]))
    }

    @Test func valuesComeBackAsTheyWere() throws {
        let shape = Shape(name: "a", color: Color(red: 1, green: 2))
        context.insert(shape)
        context.insert(Circle(name: "b"))
        try context.save()
        var all = try fetched()
        #expect(all[0].color == Color(red: 1, green: 2) && all[0].edge == Color(red: 1, green: 1))
        #expect((all[1] as? Circle)?.fill == Color(red: 9, green: 9) && all[1].color == Color(red: 3, green: 4))
        shape.color.green = 7
        shape.edge = nil
        try context.save()
        all = try fetched()
        #expect(all[0].color == Color(red: 1, green: 7) && all[0].edge == nil)
    }

    @Test func aValueWithoutDataIsRefusedWhenItIsSaved() throws {
        let shape = Shape(name: "a", color: Color(red: 255, green: 2))
        context.insert(shape)
        #expect(shape.color == Color(red: 255, green: 2))
        #expect(throws: SwiftDataError.unencodableValue) { try context.save() }
        shape.color = Color(red: 1, green: 1)
        try context.save()
        #expect(try fetched().map(\.color) == [Color(red: 1, green: 1)])
    }

    @Test func aValueThatItsTransformerDoesNotReadBackIsRefused() throws {
        let container = try ModelContainer(
            for: Secret.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let context = ModelContext(container)
        let secret = Secret(word: "", hint: nil)
        context.insert(secret)
        #expect(secret.word == "")
        #expect(throws: SwiftDataError.unencodableValue) { try context.save() }
        secret.word = "abc"
        try context.save()
        #expect(try ModelContext(container).fetch(FetchDescriptor<Secret>()).map(\.word) == ["abc"])
    }

    @Test func aTransformerThatIsNotThereOrCannotReadBackIsNamed() throws {
        let circle = Circle(name: "a")
        context.insert(circle)
        circle.orphan = Color(red: 1, green: 1)
        let error = #expect(throws: SwiftDataError.self) { try context.save() }
        #expect(error?.message.contains("OrphanTransformer") == true)
        circle.orphan = nil
        circle.lost = Color(red: 1, green: 1)
        let other = #expect(throws: SwiftDataError.self) { try context.save() }
        #expect(other?.message.contains("OneWay") == true)
    }

    @Test func whatAnotherProgramWroteIsChecked() throws {
        context.insert(Shape(name: "a", color: Color(red: 1, green: 2)))
        try context.save()
        try container.store.write { try $0.execute(sql: "UPDATE Shape SET color = x'010203'") }
        #expect(throws: SwiftDataError.corruptValue) { try fetched() }
    }

    @Test func theHistoryHasTransformedTexts() throws {
        let container = try ModelContainer(
            for: Secret.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let context = ModelContext(container)
        let secret = Secret(word: "abc", hint: "def")
        context.insert(secret)
        try context.save()
        context.delete(secret)
        try context.save()
        let changes = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).flatMap(\.changes)
        guard case .insert(let first)? = changes.first, let insertion = first as? DefaultHistoryInsert<Secret>,
            case .delete(let last)? = changes.last, let deletion = last as? DefaultHistoryDelete<Secret>
        else {
            Issue.record("no insertion, or no deletion")
            return
        }
        let inserted: [String?] = [insertion.values[\.word], insertion.values[\.hint]]
        #expect(inserted == ["abc", "def"])
        let preserved: [String?] = [deletion.tombstone[\.word], deletion.tombstone[\.hint]]
        #expect(preserved == ["abc", "def"])
    }

    @Test func transformersAreFoundByName() throws {
        let name = NSValueTransformerName("TestTransformer-\(UUID())")
        ValueTransformer.setValueTransformer(ColorTransformer(), forName: name)
        #expect(ValueTransformer.valueTransformerNames().contains(name))
        ValueTransformer.setValueTransformer(nil, forName: name)
        #expect(!ValueTransformer.valueTransformerNames().contains(name))
    }
}
