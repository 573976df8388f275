import Foundation
import GRDB
import MartletData
import MartletStore
import SwiftData
import Testing

@Model
class Vehicle {
    var name: String
    var wheels: Int
    var garage: Garage?

    init(_ name: String, wheels: Int) {
        self.name = name
        self.wheels = wheels
    }
}

@Model
class Car: Vehicle {
    var doors: Int

    init(_ name: String, doors: Int) {
        self.doors = doors
        super.init(name, wheels: 4)
    }
}

@Model
final class Truck: Car {
    var load: Double?

    init(_ name: String, doors: Int, load: Double?) {
        self.load = load
        super.init(name, doors: doors)
    }
}

@Model
final class Bike: Vehicle {
    var gears: Int?

    init(_ name: String, gears: Int?) {
        self.gears = gears
        super.init(name, wheels: 2)
    }
}

@Model
final class Garage {
    @Attribute(.unique) var name: String
    var best: Vehicle?
    @Relationship(inverse: \Vehicle.garage) var vehicles: [Vehicle] = []

    init(_ name: String) { self.name = name }
}

/// Classes of a hierarchy, by themselves and in relationships.
struct InheritanceTests {
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try ModelContainer(
            for: Car.self, Truck.self, Bike.self, Garage.self,
            configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        context = ModelContext(container)
        let vehicles: [Vehicle] = [
            Vehicle("sledge", wheels: 0), Car("small", doors: 3), Car("large", doors: 5),
            Truck("lorry", doors: 2, load: 12.5), Truck("empty", doors: 3, load: nil), Bike("racer", gears: 12),
            Bike("fixed", gears: nil),
        ]
        let garages = [Garage("a"), Garage("b"), Garage("c")]
        for garage in garages { context.insert(garage) }
        for (number, vehicle) in vehicles.enumerated() {
            vehicle.garage = number == 0 ? nil : garages[number % 2]
            context.insert(vehicle)
        }
        garages[0].best = vehicles[3]
        garages[1].best = vehicles[5]
        try context.save()
    }

    private func check<T: PersistentModel>(
        _ predicate: Predicate<T>, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let reader = container.reader()
        let expected = try reader.all(T.self).filter { try predicate.evaluate($0) }.map(\.persistentModelID)
        #expect(
            try reader.fetchIdentifiers(FetchDescriptor(predicate: predicate)) == expected,
            sourceLocation: sourceLocation)
        #expect(!expected.isEmpty, "It shows nothing.", sourceLocation: sourceLocation)
    }

    @Test func typeChecksSelectTheSameModelsAsFoundation() throws {
        try check(#Predicate<Vehicle> { $0 is Car })
        try check(#Predicate<Vehicle> { $0 is Truck })
        try check(#Predicate<Vehicle> { !($0 is Car) })
        try check(#Predicate<Vehicle> { ($0 is Car) == false })
        try check(#Predicate<Vehicle> { $0 is Car && !($0 is Truck) })
        try check(#Predicate<Car> { $0 is Truck || $0.doors == 5 })
    }

    @Test func castsSelectTheSameModelsAsFoundation() throws {
        try check(#Predicate<Vehicle> { ($0 as? Car)?.doors == 3 })
        try check(#Predicate<Vehicle> { ($0 as? Car)?.doors != 3 })
        try check(#Predicate<Vehicle> { (($0 as? Truck)?.load ?? 0) > 1 })
        try check(#Predicate<Vehicle> { ($0 as? Bike)?.gears == nil })
        try check(#Predicate<Vehicle> { if let car = $0 as? Car { car.doors > 2 } else { $0.wheels == 2 } })
        try check(#Predicate<Car> { ($0 as? Truck)?.load == 12.5 })
    }

    @Test func typeChecksThroughRelationshipsSelectTheSameModelsAsFoundation() throws {
        try check(#Predicate<Garage> { $0.best is Car })
        try check(#Predicate<Garage> { !($0.best is Car) })
        try check(#Predicate<Garage> { ($0.best is Car) == false })
        try check(#Predicate<Garage> { ($0.best as? Truck)?.load == 12.5 })
        try check(#Predicate<Vehicle> { $0.garage?.best is Bike })
        try check(#Predicate<Garage> { $0.vehicles.contains { $0 is Bike } })
        try check(#Predicate<Garage> { $0.vehicles.filter { $0 is Car }.count == 2 })
        try check(#Predicate<Garage> { $0.vehicles.allSatisfy { $0 is Car || $0 is Bike } })
    }

    @Test func fetchingAClassFindsItsSubclasses() throws {
        #expect(try context.fetchCount(FetchDescriptor<Vehicle>()) == 7)
        #expect(try context.fetchCount(FetchDescriptor<Car>()) == 4)
        #expect(try context.fetchCount(FetchDescriptor<Truck>()) == 2)
        let found = try container.reader().fetch(
            FetchDescriptor<Car>(sortBy: [SortDescriptor(\.doors), SortDescriptor(\.name)]))
        #expect(found.map(\.name) == ["lorry", "empty", "small", "large"])
        #expect(found.map { $0 is Truck } == [true, true, false, false])
    }

    @Test func relationshipsReturnInstancesOfTheirOwnClass() throws {
        let garage = try #require(
            try container.reader().fetch(FetchDescriptor<Garage>(sortBy: [SortDescriptor(\.name)])).first)
        #expect((garage.best as? Truck)?.load == 12.5)
        #expect(garage.vehicles.filter { $0 is Car }.count == 2)
    }

    @Test func inheritedAndOwnAttributesAreSavedAndRolledBack() throws {
        let truck = try #require(try context.all(Truck.self).first)
        truck.name = "van"
        truck.doors = 4
        truck.load = nil
        context.rollback()
        #expect(truck.name == "lorry")
        #expect(truck.doors == 2)
        #expect(truck.load == 12.5)
        truck.name = "van"
        truck.load = 1
        try context.save()
        let found = try #require(try container.reader().all(Truck.self).first)
        #expect(found.name == "van")
        #expect(found.load == 1)
    }

    @Test func aDeletionWithoutSubclassesKeepsThem() throws {
        try context.delete(model: Car.self, includeSubclasses: false)
        try context.save()
        #expect(try context.all(Car.self).map(\.name) == ["lorry", "empty"])
        try context.delete(model: Car.self)
        try context.save()
        #expect(try context.all(Vehicle.self).map(\.name) == ["sledge", "racer", "fixed"])
    }

    @Test func fetchingABaseClassFindsUnsavedSubclasses() throws {
        context.insert(Truck("new", doors: 9, load: 3))
        #expect(try context.fetchCount(FetchDescriptor<Vehicle>(predicate: #Predicate { $0.name == "new" })) == 1)
        #expect(try context.fetch(FetchDescriptor<Car>(predicate: #Predicate { $0.doors == 9 })).first is Truck)
        #expect(try context.fetchCount(FetchDescriptor<Bike>(predicate: #Predicate { $0.name == "new" })) == 0)
    }

    @Test func anIdentifierNamesTheModelsOwnClass() throws {
        let found = try context.fetchIdentifiers(FetchDescriptor<Vehicle>(sortBy: [SortDescriptor(\.name)]))
        #expect(Set(found.map(\.entityName)) == ["Vehicle", "Car", "Truck", "Bike"])
        for id in found { #expect(context.model(for: id).persistentModelID == id) }
    }

    @Test func anIdentifierSelectsAModelOfItsHierarchyOnly() throws {
        let truck = try #require(try context.all(Truck.self).first)
        let id = truck.persistentModelID
        func count<T: PersistentModel>(_ predicate: Predicate<T>) throws -> Int {
            try context.fetchCount(FetchDescriptor(predicate: predicate))
        }
        #expect(try count(#Predicate<Vehicle> { $0.persistentModelID == id }) == 1)
        #expect(try count(#Predicate<Car> { $0.persistentModelID == id }) == 1)
        #expect(try count(#Predicate<Truck> { $0.persistentModelID == id }) == 1)
        #expect(try count(#Predicate<Bike> { $0.persistentModelID == id }) == 0)
        #expect(try count(#Predicate<Garage> { $0.best?.persistentModelID == id }) == 1)
        let garages = try context.fetchIdentifiers(FetchDescriptor<Garage>())
        #expect(try count(#Predicate<Vehicle> { garages.contains($0.persistentModelID) }) == 0)
    }

    @Test func anUnknownClassIsReadAsTheRequestedOne() throws {
        try container.store.write {
            try $0.execute(sql: "INSERT INTO Vehicle(_type, name, wheels) VALUES ('Boat', 'boat', 0)")
        }
        let boat = try #require(
            try container.reader().fetch(FetchDescriptor<Vehicle>(predicate: #Predicate { $0.name == "boat" })).first)
        #expect(type(of: boat) == Vehicle.self)
        #expect(try context.fetchCount(FetchDescriptor<Car>()) == 4)
    }
}
