/// Makes `import SwiftData` compile where Apple's module of that name doesn't exist.
@_exported public import MartletData
