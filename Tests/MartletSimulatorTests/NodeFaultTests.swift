import MartletSimulator
import Testing

/// Faults of a single machine: each by itself, with a check that it really occurs.
@Suite struct NodeFaultTests {
    /// - Returns: the traces of these seeds, which all keep every guarantee.
    private func traces(_ faults: Set<Fault>, seeds: ClosedRange<UInt64>) throws -> [String] {
        var options = SimulationOptions()
        options.faults = faults
        let simulator = try Simulator(options: options)
        return seeds.map { seed in
            let report = simulator.run(seed: seed)
            #expect(report.failure == nil, "\(report.command())")
            return report.trace.joined(separator: "\n")
        }
    }

    @Test func aNodeWithAFullDiskContinuesOnceItHasRoom() throws {
        let traces = try traces([.diskFull], seeds: 1...8)
        #expect(traces.contains { $0.contains("nothing: database or disk is full") })
        #expect(traces.contains { $0.contains("can't read (database or disk is full") })
        #expect(traces.contains { $0.contains("has room on its disk") })
    }

    @Test func aRestoredStoreTakesANewNodeIDAndRecoversItsPublishedChanges() throws {
        let traces = try traces([.restore], seeds: 1...10)
        #expect(traces.contains { $0.contains("takes a node ID of its own") })
        // Changes that the topic lacks, too, are lost.
        #expect(traces.contains { $0.contains("of which the topic has 0") })
    }

    @Test func aCopyContinuesAsAnotherNode() throws {
        let traces = try traces([.copy], seeds: 1...10)
        #expect(traces.contains { $0.contains("is copied") })
        #expect(traces.contains { $0.contains("d  takes a node ID of its own") })
        #expect(traces.contains { $0.contains("d  writes d1.") })
        #expect(traces.contains { $0.contains("continues on another machine") })
    }
}
