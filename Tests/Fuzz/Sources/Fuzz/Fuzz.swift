import Foundation
import Logging

/// `FUZZ_TARGET=name Fuzz [libFuzzer's arguments]`, or `Fuzz seeds CORPUS` to write the initial inputs of the corpora
/// of snapshots and checks. The main function is libFuzzer's. To merge corpora, it starts itself again with the same
/// arguments and environment.
private enum Fuzz {
    // Safe because it is set before the fuzzer's only thread starts.
    nonisolated(unsafe) static var target: (any FuzzTarget)?

    static func begin(_ arguments: [String]) throws {
        LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
        if arguments.count == 3, arguments[1] == "seeds" {
            try Seeds.write(to: arguments[2])
            exit(0)
        }
        target = try FuzzTargets.make(ProcessInfo.processInfo.environment["FUZZ_TARGET"] ?? "")
        guard target == nil else { return }
        FileHandle.standardError.write(
            Data("Set FUZZ_TARGET to one of \(FuzzTargets.names.joined(separator: ", ")).\n".utf8))
        exit(64)
    }
}

/// libFuzzer calls this first.
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
    return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    Fuzz.target?.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
}
