import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// A problem in the user's code, and what to do about it.
struct Problem: DiagnosticMessage {
    let message: String
    var severity: DiagnosticSeverity = .error

    var diagnosticID: MessageID { MessageID(domain: "MartletData", id: message) }

    init(_ message: String, severity: DiagnosticSeverity = .error) {
        self.message = message
        self.severity = severity
    }
}

extension MacroExpansionContext {
    /// Reports the problem on the user's own line.
    func report(_ message: String, at node: some SyntaxProtocol) {
        diagnose(Diagnostic(node: node, message: Problem(message)))
    }

    func warn(_ message: String, at node: some SyntaxProtocol) {
        diagnose(Diagnostic(node: node, message: Problem(message, severity: .warning)))
    }
}
