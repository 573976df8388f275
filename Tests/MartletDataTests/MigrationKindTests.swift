import Foundation
import GRDB
import SwiftData
import Testing

/// What a lightweight migration does with each kind of change.
struct MigrationKindTests {
    private func withBoxes(_ body: (MigratedStore) throws -> Void) throws {
        try MigratedStore.with(
            fill: { context in
                let label = BoxV1.Label("fragile")
                for (index, name) in ["a", "b", "c"].enumerated() {
                    let box = BoxV1.Box(name, weight: index, note: index == 1 ? "n" : nil, code: "\(index)0")
                    context.insert(box)
                    if index < 2 { box.label = label }
                }
            }, body)
    }

    @Test func addedAttributesHaveTheirDefaultOrNothing() throws {
        try withBoxes { store in
            try store.use(BoxAdded.self) { context throws in
                let boxes = try context.all(BoxAdded.Box.self)
                #expect(boxes.map(\.stars) == [3, 3, 3])
                #expect(boxes.map(\.remark) == [nil, nil, nil])
                #expect(boxes.map(\.opened) == Array(repeating: Date(timeIntervalSince1970: 60), count: 3))
                #expect(boxes.map(\.name) == ["a", "b", "c"])
                // No change of the history for what each node adds by itself.
                #expect(try context.history().count == 1)
            }
        }
    }

    @Test func addedAttributeWithoutDefaultIsRefused() throws {
        try withBoxes { store in
            try store.expectRefusal(
                BoxRequiredAdded.self, .missingMigration, "from 1.0.0 to 2.0.0", "Box.maker", "default value")
        }
    }

    @Test func removedAttributesKeepWhatIsInThem() throws {
        try withBoxes { store in
            try store.use(BoxRemoved.self) { context throws in
                context.insert(BoxRemoved.Box())
                #expect(try context.all(BoxRemoved.Box.self).map(\.name) == ["a", "b", "c", ""])
            }
            #expect(
                try store.lines("SELECT name, weight, note, code FROM Box")
                    == ["a|0|NULL|00", "b|1|n|10", "c|2|NULL|20", "|NULL|NULL|NULL"])
            // The next version finds them again, and fills in what is missing.
            try store.use(BoxBack.self) { context throws in
                #expect(try context.all(BoxBack.Box.self).map(\.weight) == [0, 1, 2, 0])
                #expect(try context.all(BoxBack.Box.self).map(\.code) == ["00", "10", "20", ""])
            }
            #expect(try store.lines("SELECT name FROM pragma_index_list('Box') ORDER BY 1") == ["Box_weight_index"])
        }
    }

    @Test func renamedAttributesAndRelationshipsKeepTheirValues() throws {
        try withBoxes { store in
            try store.use(BoxRenamed.self) { context throws in
                let boxes = try context.all(BoxRenamed.Box.self)
                #expect(boxes.map(\.title) == ["a", "b", "c"])
                #expect(boxes.map(\.mass) == [0, 1, 2])
                #expect(boxes.map { $0.sticker?.text } == ["fragile", "fragile", nil])
            }
            #expect(
                try store.lines("SELECT name FROM pragma_table_info('Box')")
                    == ["_id", "title", "mass", "note", "code", "sticker"])
            #expect(try store.lines("SELECT name FROM pragma_index_list('Box')") == ["Box_mass_index"])
        }
    }

    @Test func renamedAndChangedAtOnce() throws {
        try withBoxes { store in
            try store.use(BoxRenamedAndChanged.self) { context throws in
                let boxes = try context.all(BoxRenamedAndChanged.Box.self)
                #expect(boxes.map(\.title) == ["a", "b", "c"])
                #expect(boxes.map(\.mass) == [0, 1, 2])
                #expect(boxes.map(\.remark) == ["none", "n", "none"])
                boxes[0].title = nil
                boxes[1].mass = 0.5
                #expect(try context.history().count == 1)
            }
            #expect(try store.lines("SELECT title, typeof(mass) FROM Box") == ["NULL|real", "b|real", "c|real"])
        }
    }

    @Test func namesThatAreExchangedAreRefused() throws {
        try withBoxes { store in
            try store.expectRefusal(BoxSwapped.self, .missingMigration, "Box.name", "code", "third name")
        }
    }

    @Test func namesThatMoveOnAreRefused() throws {
        try withBoxes { store in
            try store.expectRefusal(BoxShifted.self, .missingMigration, "Box.name", "code", "mark", "third name")
        }
    }

    @Test func optionalAttributeBecomesRequiredWithItsDefault() throws {
        try withBoxes { store in
            try store.use(BoxRequired.self) { context throws in
                #expect(try context.all(BoxRequired.Box.self).map(\.note) == ["none", "n", "none"])
                #expect(try context.history().count == 1)
            }
            let error = #expect(throws: DatabaseError.self) { try store.run("UPDATE Box SET note = NULL") }
            #expect(error?.extendedResultCode == .SQLITE_CONSTRAINT_NOTNULL)
        }
    }

    @Test func optionalAttributeWithoutDefaultIsRefused() throws {
        try withBoxes { store in
            try store.expectRefusal(
                BoxRequiredWithoutDefault.self, .missingMigration, "Box.note", "no longer optional")
        }
    }

    @Test func requiredAttributeBecomesOptional() throws {
        try withBoxes { store in
            try store.use(BoxOptional.self) { context throws in
                let boxes = try context.all(BoxOptional.Box.self)
                #expect(boxes.map(\.name) == ["a", "b", "c"])
                boxes[0].name = nil
                boxes[0].weight = nil
            }
            try store.use(BoxOptional.self) { context throws in
                #expect(try context.all(BoxOptional.Box.self).map(\.name) == [nil, "b", "c"])
            }
        }
    }

    @Test func changedDefaultChangesNoRow() throws {
        try withBoxes { store in
            try store.use(BoxDefault.self) { context throws in
                #expect(try context.all(BoxDefault.Box.self).map(\.weight) == [0, 1, 2])
                #expect(BoxDefault.Box().weight == 7)
            }
            // A default that is another one each time is no new schema each time.
            let before = try store.lines("SELECT sql FROM sqlite_schema")
            try store.use(BoxDefault.self) { _ in }
            #expect(try store.lines("SELECT sql FROM sqlite_schema") == before)
        }
    }

    @Test func modelThatIsLeftOutKeepsItsTable() throws {
        try withBoxes { store in
            try store.use(BoxLeftOut.self) { context throws in
                #expect(try context.all(BoxLeftOut.Box.self).map(\.name) == ["a", "b", "c"])
                context.insert(BoxLeftOut.Box())
            }
            #expect(try store.lines("SELECT text FROM Label") == ["fragile"])
            #expect(try store.lines("SELECT label FROM Box") == ["1", "1", "NULL", "NULL"])
            try store.use(BoxBack.self) { context throws in
                #expect(
                    try context.all(BoxBack.Box.self).map { $0.label?.text } == ["fragile", "fragile", nil, nil])
            }
        }
    }

    @Test func addedModelsAndRelationshipsAreCaptured() throws {
        try withBoxes { store in
            try store.use(BoxLid.self) { context throws in
                let box = try #require(try context.all(BoxLid.Box.self).first)
                box.lid = BoxLid.Lid("red")
                box.stickers = [BoxLid.Sticker(), BoxLid.Sticker()]
                try context.save()
                #expect(try context.history().last?.changes.count == 4)
            }
            try store.use(BoxLid.self) { context throws in
                let box = try #require(try context.all(BoxLid.Box.self).first)
                #expect(box.lid?.colour == "red")
                #expect(box.stickers.count == 2)
                #expect(box.label?.text == "fragile")
            }
        }
    }

    @Test func indexesFollow() throws {
        try withBoxes { store in
            try store.use(BoxOtherIndexes.self) { _ in }
            #expect(
                try store.lines("SELECT name FROM pragma_index_list('Box') ORDER BY 1")
                    == ["Box_name_index", "Box_note_code_index"])
        }
    }

    // MARK: Unique

    @Test func uniqueIsAddedAndTakenAway() throws {
        try withBoxes { store in
            try store.use(BoxUnique.self) { context throws in
                let box = BoxUnique.Box()
                box.name = "b"
                box.note = "n"
                box.weight = 10
                context.insert(box)
            }
            // Saving what is there already updates it.
            #expect(try store.lines("SELECT name, weight FROM Box") == ["a|0", "b|10", "c|2"])
            try store.use(BoxBack.self) { context throws in
                let box = BoxBack.Box()
                box.name = "b"
                box.note = "n"
                context.insert(box)
            }
            #expect(try store.lines("SELECT count(*) FROM Box") == ["4"])
        }
    }

    @Test func duplicatesOfWhatIsToBeUniqueAreCounted() throws {
        try withBoxes { store in
            try store.use(BoxV1.self) { context throws in
                for (name, note) in [("b", "n"), ("d", "m"), ("d", "m"), ("a", nil), ("a", nil)] {
                    context.insert(BoxV1.Box(name, note: note))
                }
            }
            try store.expectRefusal(
                BoxUnique.self, .missingMigration, "Box.(name, note)", "4 models share 2 values", "willMigrate")
        }
    }

    // MARK: Types

    @Test func numberBecomesAnotherKindWhereNothingIsLost() throws {
        try withBoxes { store in
            try store.use(BoxReal.self) { context throws in
                #expect(try context.all(BoxReal.Box.self).map(\.weight) == [0, 1, 2])
            }
            #expect(try store.lines("SELECT DISTINCT typeof(weight) FROM Box") == ["real"])
            #expect(try store.lines("SELECT name FROM pragma_index_list('Box')") == ["Box_weight_index"])
        }
        try withBoxes { store in
            try store.use(BoxV1.self) { context throws in
                for box in try context.all(BoxV1.Box.self) { box.weight = (1 << 53) + 1 }
            }
            try store.expectRefusal(BoxReal.self, .missingMigration, "Box.weight", "3 models have a value")
        }
    }

    @Test func otherTypesAreRefusedInALightweightStage() throws {
        try withBoxes { store in
            try store.expectRefusal(BoxText.self, .missingMigration, "Box.weight", "from Int", "to String", "custom")
            try store.expectRefusal(BoxData.self, .missingMigration, "Box.weight", "to Data")
            // Kept in the same way, and yet not every value is one.
            try store.expectRefusal(BoxColour.self, .missingMigration, "Box.code", "Colour", "3 models")
        }
    }

    // MARK: Relationships

    @Test func toOneBecomesToManyAndBack() throws {
        try withBoxes { store in
            try store.use(BoxV1.self) { context throws in
                let boxes = try context.all(BoxV1.Box.self)
                boxes[1].label = BoxV1.Label("heavy")
            }
            try store.use(BoxLabels.self) { context throws in
                let boxes = try context.all(BoxLabels.Box.self)
                #expect(boxes.map { $0.labels.map(\.text) } == [["fragile"], ["heavy"], []])
                #expect(try context.history().count == 2)
                boxes[2].labels = boxes[0].labels
            }
            try store.use(BoxOneLabel.self) { context throws in
                #expect(try context.all(BoxOneLabel.Box.self).map { $0.label?.text } == [nil, "heavy", "fragile"])
            }
        }
    }

    @Test func toOneThatSeveralShareCannotBecomeToMany() throws {
        try withBoxes { store in
            try store.expectRefusal(BoxLabels.self, .missingMigration, "Box.labels", "1 models of Label")
        }
    }

    @Test func toOneBecomesManyToMany() throws {
        try withBoxes { store in
            try store.use(BoxManyLabels.self) { context throws in
                let boxes = try context.all(BoxManyLabels.Box.self)
                #expect(boxes.map { $0.labels.map(\.text) } == [["fragile"], ["fragile"], []])
                #expect(try context.all(BoxManyLabels.Label.self).map { $0.boxes.count } == [2])
            }
        }
    }
}
