import Foundation
import Logging

/// `Fuzz TARGET [libFuzzer's arguments]`, or `Fuzz seeds FOLDER` to write what the corpus of snapshots began with. The main
/// function is libFuzzer's.
private enum Fuzz {
    // Safe because it is set before the only thread of the fuzzer begins.
    nonisolated(unsafe) static var target: (any Target)?

    static func begin(_ arguments: [String]) throws {
        LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
        if arguments.count == 3, arguments[1] == "seeds" {
            try SnapshotTarget.writeSeeds(to: arguments[2])
            exit(0)
        }
        target = try arguments.count > 1 ? makeTarget(arguments[1]) : nil
        guard target == nil else { return }
        FileHandle.standardError.write(
            Data("usage: Fuzz transaction|messages|snapshot|token|configuration [arguments of libFuzzer]\n".utf8))
        exit(64)
    }

    private static func makeTarget(_ name: String) throws -> (any Target)? {
        switch name {
        case "transaction": TransactionTarget()
        case "messages": try MessagesTarget()
        case "snapshot": try SnapshotTarget()
        case "token": TokenTarget()
        case "configuration": ConfigurationTarget()
        default: nil
        }
    }
}

/// One way in for bytes from elsewhere. What it throws is an answer; what it traps on is a finding.
protocol Target {
    func run(_ bytes: [UInt8])
}

/// Called by libFuzzer before it reads its arguments: the target's name is taken out of them.
@_cdecl("LLVMFuzzerInitialize")
func initialize(
    _ count: UnsafeMutablePointer<Int32>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>
) -> Int32 {
    do {
        try Fuzz.begin((0..<Int(count.pointee)).compactMap { arguments.pointee[$0].map { String(cString: $0) } })
    } catch {
        fatalError("\(error)")
    }
    for index in 1..<Int(count.pointee) { arguments.pointee[index] = arguments.pointee[index + 1] }
    count.pointee -= 1
    return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    Fuzz.target?.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
}
