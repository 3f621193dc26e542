// What the page says, in each language of the pages.

const ENGLISH = {
    editor: 'Python program',
    loading: 'Loading Python into this page ...',
    failed: 'The checker could not be started: {0}',
    ready: 'Ready. The program stays in this browser.',
    noFindings: 'Nothing found.',
    findings: '{0} found.',
    line: 'line {0}',
    fixes: 'Fixes',
    fixesOf: 'Fixes of line {0}',
    noFixes: 'There is no fix here.',
    needLibcst: 'Fixes need libcst, which could not be loaded. Everything else works without it.',
    notWritten: 'This fix cannot be written here: the statement uses newer syntax than the parser in the browser reads.',
    example: 'Example',
    own: 'your program',
    copied: 'Copied.',
    notCopied: 'The browser does not let this page copy.',
    broken: 'The address is damaged: no program can be read from it.',
    file: 'Opened as a file, the page can start no checker. Serve the folder: python -m http.server --directory site',
    error: 'error',
    warning: 'warning',
    information: 'information',
    hint: 'hint',
};

export type Texts = typeof ENGLISH;

const KOREAN: Texts = {
    editor: 'Python 프로그램',
    loading: '이 페이지로 Python을 불러오는 중 ...',
    failed: '검사기를 시작하지 못했습니다: {0}',
    ready: '준비되었습니다. 프로그램은 이 브라우저를 떠나지 않습니다.',
    noFindings: '찾은 것이 없습니다.',
    findings: '{0}개를 찾았습니다.',
    line: '{0}행',
    fixes: '수정',
    fixesOf: '{0}행의 수정',
    noFixes: '여기에는 수정이 없습니다.',
    needLibcst: '수정에는 libcst가 필요한데 불러오지 못했습니다. 나머지는 모두 그대로 동작합니다.',
    notWritten: '여기서는 이 수정을 쓸 수 없습니다. 브라우저의 파서가 읽는 것보다 새로운 문법이 쓰였습니다.',
    example: '예제',
    own: '직접 쓴 프로그램',
    copied: '복사했습니다.',
    notCopied: '브라우저가 이 페이지의 복사를 허용하지 않습니다.',
    broken: '주소가 손상되어 프로그램을 읽을 수 없습니다.',
    file: '파일로 열린 페이지에서는 검사기를 시작할 수 없습니다. 폴더를 서버로 여세요: python -m http.server --directory site',
    error: '오류',
    warning: '경고',
    information: '정보',
    hint: '힌트',
};

export const texts = (language: string): Texts => (language === 'ko' ? KOREAN : ENGLISH);

export const filled = (text: string, ...values: readonly (string | number)[]): string => text.replace(/\{(\d)\}/g, (_, n: string) => String(values[Number(n)]));
