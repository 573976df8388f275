import Foundation
import GRDB
import MartletStore
import SwiftData
import Testing

/// What stays when a table is rebuilt.
struct MigrationRebuildTests {
    private func withBoxes(_ body: (MigratedStore) throws -> Void) throws {
        try MigratedStore.with(
            fill: { context in
                let label = BoxV1.Label("fragile")
                for name in ["a", "b", "c"] {
                    let box = BoxV1.Box(name)
                    context.insert(box)
                    box.label = label
                }
                try context.save()
                // A number that was given is not given again.
                let last = try context.all(BoxV1.Box.self)[2]
                context.delete(last)
            }, body)
    }

    @Test func rowsKeepTheirNumbersAndNoneIsUsedAgain() throws {
        try withBoxes { store in
            let old = ModelContext(try store.open(BoxV1.self))
            let ids = try old.all(BoxV1.Box.self).map(\.persistentModelID)
            try store.use(BoxOptional.self) { context throws in
                #expect(try context.all(BoxOptional.Box.self).map(\.persistentModelID) == ids)
                context.insert(BoxOptional.Box())
            }
            #expect(try store.lines("SELECT _id FROM Box ORDER BY _id") == ["1", "2", "4"])
            #expect(try store.lines("SELECT name, seq FROM sqlite_sequence ORDER BY 1") == ["Box|4", "Label|1"])
        }
    }

    @Test func referencesCaptureAndHistoryGoOn() throws {
        try withBoxes { store in
            let before = try store.lines("SELECT * FROM _martlet_log")
            try store.use(BoxOptional.self) { context throws in
                #expect(try context.history().count == 2)
            }
            #expect(try store.lines("SELECT * FROM _martlet_log") == before)
            // Other programs' foreign keys work, and their writes are seen.
            try store.run("PRAGMA foreign_keys = ON; UPDATE Box SET weight = 9 WHERE _id = 1; DELETE FROM Label")
            #expect(try store.lines("SELECT label FROM Box") == ["NULL", "NULL"])
            try store.use(BoxOptional.self) { context throws in
                let history = try context.history()
                #expect(history.count == 3)
                #expect(history.last?.changes.count == 4)
                #expect(try context.container.store.audit().isClean)
            }
        }
    }

    @Test func whatOtherProgramsAddedStays() throws {
        try withBoxes { store in
            try store.run(
                """
                ALTER TABLE Box ADD COLUMN "their, own" TEXT COLLATE NOCASE DEFAULT 'x'
                  CHECK (length("their, own") < 9);
                ALTER TABLE Box ADD COLUMN twice INTEGER AS (weight * 2); -- generated
                UPDATE Box SET "their, own" = 'y' WHERE _id = 2;
                CREATE INDEX their_index ON Box("their, own") WHERE weight > 0;
                CREATE VIEW their_view AS SELECT name, "their, own" FROM Box;
                CREATE TABLE counter(n); INSERT INTO counter VALUES (0);
                CREATE TRIGGER their_trigger AFTER INSERT ON Box BEGIN UPDATE counter SET n = n + 1; END;
                CREATE TABLE child(box INTEGER REFERENCES Box(_id) ON DELETE CASCADE);
                INSERT INTO child VALUES (1), (2);
                """)
            try store.use(BoxOptional.self) { context throws in
                context.insert(BoxOptional.Box())
                try context.save()
            }
            #expect(try store.lines("SELECT * FROM their_view") == ["a|x", "b|y", "NULL|x"])
            #expect(try store.lines("SELECT n FROM counter") == ["1"])
            #expect(try store.lines("SELECT box FROM child") == ["1", "2"])
            #expect(try store.lines("SELECT twice FROM Box") == ["0", "0", "NULL"])
            #expect(
                try store.lines("SELECT name FROM pragma_index_list('Box') ORDER BY 1")
                    == ["Box_weight_index", "their_index"])
            let error = #expect(throws: DatabaseError.self) {
                try store.run("UPDATE Box SET \"their, own\" = 'much too long'")
            }
            #expect(error?.extendedResultCode == .SQLITE_CONSTRAINT_CHECK)
            #expect(try store.lines("SELECT count(*) FROM Box WHERE \"their, own\" = 'X'") == ["2"])
        }
    }

    @Test func columnOfAnotherProgramIsNotTakenOver() throws {
        try withBoxes { store in
            try store.run("ALTER TABLE Box ADD COLUMN stars TEXT")
            try store.use(BoxV1.self) { _ in }
            try store.expectRefusal(BoxAdded.self, .missingMigration, "Box.stars", "another program")
        }
    }

    @Test func preservedValuesAreOnlyShownWhereTheyWereKept() throws {
        try MigratedStore.with(
            SampleTripsSchemaV2.self,
            fill: { context in
                let trip = SampleTripsSchemaV2.Trip(
                    name: "a", destination: "b", startDate: .day(1), endDate: .day(2))
                context.insert(trip)
                try context.save()
                context.delete(trip)
            }
        ) { store in
            try store.use(SampleTripsSchemaV4.self, SampleTripsMigrationPlan.self) { context throws in
                guard case .delete(let change)? = try context.history().last?.changes.first else {
                    Issue.record("no delete")
                    return
                }
                let deletion = try #require(change as? DefaultHistoryDelete<Trip>)
                #expect(deletion.tombstone.map { _ in 1 }.isEmpty)
            }
        }
    }
}
