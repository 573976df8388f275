import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes of one schema that run anti-entropy checks against each other.
struct AntiEntropyLab {
    let lab: Lab
    let checks: InMemoryBus

    init(_ schema: String = Lab.trips, partitions: Int = 1, request: AttachRequest = .init()) throws {
        lab = try Lab(schema, partitions: partitions, request: request)
        checks = InMemoryBus(topic: AntiEntropy.name(of: "t"), partitionCount: 1)
    }

    func node(_ name: String, schema: String? = nil, clock: TestClock = TestClock()) throws -> CheckedNode {
        try checked(lab.node(name, schema: schema, clock: clock))
    }

    func checked(_ node: TestNode) throws -> CheckedNode {
        let antiEntropy = AntiEntropy(engine: node.engine, bus: checks, topic: "t")
        _ = try antiEntropy.connect()
        return CheckedNode(node: node, antiEntropy: antiEntropy)
    }

    var messageCount: Int { get throws { try MartletSyncTests.messages(checks).count } }
}

/// A node, and its antiEntropy.
struct CheckedNode {
    let node: TestNode
    let antiEntropy: AntiEntropy

    /// Changes the file as a program without triggers does: Martlet doesn't see the change.
    func damage(_ sql: String) throws {
        let queue = try Connection.open(path: node.path, configuration: .init(), role: .applier)
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
    }

    /// The side table that holds a table's clocks.
    func side(_ table: String) throws -> String { InternalName.side(try node.entity(table).id) }

    /// The divergences that checks found, as `kind outcome table.column`.
    func found() throws -> [String] {
        try node.store.divergences().map { "\($0.kind) \($0.outcome) \($0.entity)\($0.column.map { ".\($0)" } ?? "")" }
    }

    var progress: AntiEntropyProgress { antiEntropy.currentProgress }
}

/// Lets the nodes answer each other until no node has anything more to say.
func talk(_ nodes: [CheckedNode]) throws {
    try runUntilNothingMoves("answering each other", limit: 50) {
        let before = nodes.map(\.progress)
        for node in nodes {
            guard node.antiEntropy.step(timeout: .zero) else { throw TestFailure("a check is held up") }
        }
        return nodes.map(\.progress) != before
    }
}

/// Runs one check that the first node begins.
func check(_ nodes: [CheckedNode]) throws {
    guard try nodes[0].antiEntropy.begin() else { throw TestFailure("the check did not begin") }
    try talk(nodes)
}

/// Expects that the nodes hold the same data, and that checks find nothing more, whichever node begins.
func expectAgreement(_ nodes: [CheckedNode], sourceLocation: SourceLocation = #_sourceLocation) throws {
    try expectSame(nodes.map(\.node), sourceLocation: sourceLocation)
    for node in nodes {
        let before = nodes.map(\.progress.found)
        let agreed = nodes.reduce(0) { $0 + $1.progress.agreed }
        try check([node] + nodes.filter { $0.antiEntropy !== node.antiEntropy })
        #expect(nodes.map(\.progress.found) == before, "\(node.node.name)", sourceLocation: sourceLocation)
        #expect(
            nodes.reduce(0) { $0 + $1.progress.agreed } == agreed + nodes.count - 1, "\(node.node.name)",
            sourceLocation: sourceLocation)
    }
}
