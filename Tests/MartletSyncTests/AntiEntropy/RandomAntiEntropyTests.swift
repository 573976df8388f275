import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes that wrote, read, crashed and migrated at random and then converged have the same clocks, too: checks raise no
/// false alarm.
@Suite struct RandomAntiEntropyTests {
    @Test(arguments: 1...20 as ClosedRange<UInt64>, [false, true])
    func nodesThatConvergedReportNoDivergence(seed: UInt64, migrates: Bool) throws {
        var run = try CompanyRun(seed: seed &+ 90_000, migrates: migrates)
        try run.run()
        try exchange(run.nodes)
        let lab = try AntiEntropyLab()
        let nodes = try run.nodes.map { try lab.checked($0) }
        try expectAgreement(nodes)
        for node in nodes { #expect(try node.found() == []) }
    }
}
