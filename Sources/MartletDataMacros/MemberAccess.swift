import SwiftSyntax

extension DeclModifierListSyntax {
    /// The access modifier for members that are added to a type, with a trailing space: the type's own, if it is
    /// visible to other modules. Otherwise empty.
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
