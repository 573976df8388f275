import Foundation
import MartletKafka
import MartletTestSupport
import Testing

/// The example as a user runs it: every command is a process of its own.
@Suite(.timeLimit(.minutes(5))) struct SampleTripsTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// The example's executable, which is built next to the tests.
    private var program: String {
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "SampleTrips").path
    }

    @discardableResult
    private func run(_ arguments: String..., store: String = "trips") throws -> [String] {
        let all = arguments + ["--store", directory.path("\(store).store")]
        let text = try ForeignProgram.launch(program, all, input: "")
        return text.split(separator: "\n").map(String.init)
    }

    private func addAlps(store: String = "trips") throws {
        try run(
            "add", "Alps", "Österreich", "--start", "2026-06-01", "--end", "2026-06-10", "--reason", "family", "--todo",
            "Ski", store: store)
    }

    @Test func aConfirmationMarksATripUntilItIsShown() throws {
        try addAlps()
        try run("stay", "Alps", "Hut")
        #expect(
            try run("list") == ["  Alps to Österreich, 2026-06-01 to 2026-06-10, family, staying at Hut"])
        try run("confirm", "Alps")
        let marked = "● Alps to Österreich, 2026-06-01 to 2026-06-10, family, staying at Hut (confirmed)"
        #expect(try run("list") == [marked])
        #expect(try run("list") == [marked])
        #expect(
            try run("show", "Alps") == [
                "Alps to Österreich, 2026-06-01 to 2026-06-10, family, staying at Hut (confirmed)", "  [ ] Ski",
            ])
        #expect(try run("list").first?.hasPrefix("  Alps") == true)
    }

    @Test func searchFindsTripsByTextAndKind() throws {
        try addAlps()
        try run("add", "Fair", "Work", "--start", "2026-05-01", "--end", "2026-05-02", "--perdiem", "80")
        #expect(try run("search", "osterr") == ["  Alps to Österreich, 2026-06-01 to 2026-06-10, family"])
        #expect(try run("search", "osterr", "--segment", "business") == ["No trip matches."])
        #expect(
            try run("search", "--segment", "business") == [
                "  Fair to Work, 2026-05-01 to 2026-05-02, business, 80 a day"
            ])
        try run("delete", "Alps")
        #expect(try run("list").count == 1)
    }

    @Test func aFileOfTheFirstVersionMigratesAndItsDuplicatesMerge() throws {
        try run("sow")
        #expect(
            try run("list") == [
                "  Alps to Tyrol, 2026-06-01 to 2026-06-07", "  Coast to Brittany, 2026-08-20 to 2026-08-26",
            ])
        // The remaining trip has the items of its duplicate.
        #expect(try run("show", "Alps").suffix(2) == ["  [ ] See Tyrol", "  [ ] See Valais"])
    }

    @Test func invalidArgumentsAreReported() throws {
        #expect(throws: ForeignProgram.Failure.self) { try run("show", "Nowhere") }
        do {
            try run("add", "A", "B", "--start", "2026-06-02", "--end", "2026-06-01")
            Issue.record("a trip ended before it began")
        } catch let failure as ForeignProgram.Failure {
            #expect(failure.description.contains("--end 2026-06-01: is before --start 2026-06-02"))
        }
    }

    @Test func twoCopiesSyncThroughABroker() async throws {
        let broker = try EmbeddedBroker(topics: ["trips": 1])
        let address = try #require(broker.bootstrapServers.first)
        try addAlps(store: "phone")
        let copies = try ["phone", "tablet"].map { name in
            try RunningProgram(
                program,
                ["sync", "--store", directory.path("\(name).store"), "--broker", address, "--name", name])
        }
        try await wait(for: "● Alps to Österreich, 2026-06-01 to 2026-06-10, family", on: "tablet")
        try run("stay", "Alps", "Hut", store: "tablet")
        try await wait(for: "● Alps to Österreich, 2026-06-01 to 2026-06-10, family, staying at Hut", on: "phone")
        for copy in copies { copy.interrupt() }
        for copy in copies { _ = try copy.finish() }
    }

    private func wait(for line: String, on store: String) async throws {
        var seen: [String] = []
        do {
            try await eventually(line) {
                // The syncing copy may not have created the file yet; whichever process comes first creates it.
                seen = (try? run("list", store: store)) ?? []
                return seen.contains(line)
            }
        } catch is TestFailure {
            throw TestFailure("\(store) shows \(seen) instead of \(line)")
        }
    }
}
