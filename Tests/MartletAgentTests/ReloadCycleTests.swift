import Foundation
import MartletAgent
import MartletKafka
import MartletSync
import MartletTestSupport
import Testing

/// Which configuration runs next, without an agent.
@Suite struct ReloadCycleTests {
    private func named(_ name: String) -> AgentConfiguration {
        var configuration = AgentConfiguration()
        configuration.sync.name = name
        return configuration
    }

    private func running() -> ReloadCycle { ReloadCycle(named("first"), files: [:]) }

    /// - Returns: what the wish leads to; nil if nothing has to be done for it now.
    private func want(_ name: String, _ cycle: inout ReloadCycle) throws -> ReloadCycle.Action? {
        let (isNew, action) = try cycle.want(named(name), files: [:])
        #expect(isNew)
        return action
    }

    @Test func aNewConfigurationStopsTheAgentAndRunsInTheNextOne() throws {
        var cycle = running()
        #expect(try want("second", &cycle) == .stop)
        #expect(cycle.state == .stopping)
        #expect(cycle.noteEnded(isOver: false) == .open(named("second"), orElse: named("first")))
        #expect(cycle.noteOpened(named("second")) == .run)
        #expect(cycle.state == .running && cycle.wanted == named("second"))
    }

    @Test func theSameConfigurationDisturbsNobody() throws {
        var cycle = running()
        let (isNew, action) = try cycle.want(named("first"), files: [:])
        #expect(!isNew && action == nil)
        #expect(cycle.state == .running)
    }

    @Test func aRenewedFileIsANewConfiguration() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path("ca.pem")
        try Data("a certificate".utf8).write(to: URL(fileURLWithPath: file))
        var configuration = named("first")
        configuration.kafka.tls.caLocation = file
        var cycle = ReloadCycle(configuration, files: [:])
        let (isNew, action) = try cycle.want(configuration, files: configuration.fileVersions)
        #expect(isNew && action == .stop)
    }

    @Test func theLastOfSeveralConfigurationsRuns() throws {
        var cycle = running()
        #expect(try want("second", &cycle) == .stop)
        #expect(try want("third", &cycle) == nil)
        #expect(cycle.noteEnded(isOver: false) == .open(named("third"), orElse: named("first")))
    }

    @Test func aConfigurationThatComesWhileTheNextAgentIsMadeIsNotLost() throws {
        var cycle = running()
        _ = try want("second", &cycle)
        _ = cycle.noteEnded(isOver: false)
        #expect(try want("third", &cycle) == nil)
        #expect(cycle.noteOpened(named("second")) == .runStopped)
        #expect(cycle.state == .stopping && cycle.wanted == named("third"))
        #expect(cycle.noteEnded(isOver: false) == .open(named("third"), orElse: named("second")))
    }

    @Test func aConfigurationThatTheStoreRefusesIsGivenUp() throws {
        var cycle = running()
        _ = try want("refused", &cycle)
        _ = cycle.noteEnded(isOver: false)
        #expect(cycle.noteOpened(named("first")) == .run)
        #expect(cycle.wanted == named("first"))
        // It may be accepted the next time.
        #expect(try want("refused", &cycle) == .stop)
    }

    @Test func aRefusedConfigurationLeavesALaterOneWanted() throws {
        var cycle = running()
        _ = try want("refused", &cycle)
        _ = cycle.noteEnded(isOver: false)
        _ = try want("third", &cycle)
        #expect(cycle.noteOpened(named("first")) == .runStopped)
        #expect(cycle.noteEnded(isOver: false) == .open(named("third"), orElse: named("first")))
    }

    @Test func anAgentThatNobodyReplacesIsTheLast() {
        var cycle = running()
        #expect(cycle.noteEnded(isOver: false) == .end)
        #expect(cycle.state == .ended)
    }

    /// Opening a large store takes minutes.
    @Test func aProgramThatStopsOpensTheStoreForNoOtherConfiguration() throws {
        var cycle = running()
        #expect(try want("second", &cycle) == .stop)
        #expect(cycle.noteEnded(isOver: true) == .end)
        #expect(try want("third", &cycle) == nil)
        #expect(cycle.state == .ended)
    }

    @Test func aValueThatNeedsARestartIsRefusedWhileTheAgentRunsAndWhileItStops() throws {
        var moved = named("moved")
        moved.storePath = "elsewhere.sqlite"
        var cycle = running()
        for name in ["first", "second"] {
            let error = #expect(throws: ConfigurationError.self) { try cycle.want(moved, files: [:]) }
            #expect(error?.problems.count == 1 && error?.problems.first?.hasPrefix("store.path: ") == true)
            #expect(cycle.wanted == named(name))
            if name == "first" { #expect(try want("second", &cycle) == .stop) }
        }
        #expect(cycle.state == .stopping)
    }
}
