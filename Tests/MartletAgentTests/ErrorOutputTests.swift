import Foundation
import MartletAgent
import MartletTestSupport
import Testing

@Suite struct ErrorOutputTests {
    @Test func aFullDiskDoesNotEndTheProgram() async {
        await #expect(processExitsWith: .success) {
            // Fails each write, as a full disk does.
            guard let full = FileHandle(forWritingAtPath: "/dev/full") else { exit(2) }
            ErrorOutput.write("a line\n", to: full)
            exit(0)
        }
    }

    @Test func aPipeWithoutAReaderDoesNotEndTheProgram() async {
        await #expect(processExitsWith: .success) {
            signal(SIGPIPE, SIG_IGN)
            let pipe = Pipe()
            try? pipe.fileHandleForReading.close()
            ErrorOutput.write("a line\n", to: pipe.fileHandleForWriting)
            exit(0)
        }
    }

    @Test func wholeLinesAreWritten() throws {
        let pipe = Pipe()
        ErrorOutput.write("grün\n", to: pipe.fileHandleForWriting)
        try pipe.fileHandleForWriting.close()
        #expect(try pipe.fileHandleForReading.readToEnd() == Data("grün\n".utf8))
    }
}
