import SwiftSyntax

extension DeclModifierListSyntax {
    /// The access that members added to a type have, with a space behind it: the type's own, as far as others may see
    /// it.
    var memberAccess: String {
        for modifier in self {
            switch modifier.name.tokenKind {
            case .keyword(.public), .keyword(.open): return "public "
            case .keyword(.package): return "package "
            default: continue
            }
        }
        return ""
    }
}
